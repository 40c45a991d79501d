"""The documentation site: `make docs` builds it into docs/_build, without a network; warnings are errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import declared

import cuewise

project = "cuewise"
author = "The cuewise developers"
release = version = cuewise.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "results/*"]  # stored values are no pages
html_theme = "furo"
html_title = f"cuewise {release}"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 3
myst_ref_domains = ["std"]  # a link to results is a page, not the module cuewise.results
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 90
python_use_unqualified_type_names = True


def as_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with equations, not markup: paragraphs are escaped, indented parts stay as they stand."""
    found: list[str] = []
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        if not paragraph:
            continue
        aligned = len(paragraph) > 1 and any(re.search(r"\S {2,}\S", each) for each in paragraph)
        if aligned or any(each.startswith("  ") for each in paragraph):
            found += ["::", "", *(f"    {each}" for each in paragraph), ""]
        else:
            found += [*map(escaped, paragraph), ""]
        paragraph = []
    lines[:] = found


def escaped(line: str) -> str:
    """Backquoted words are code, everything else is text."""
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(f"`{p}`" if p.startswith("`") else re.sub(r"([\\*|`_])", r"\\\1", p) for p in parts)


def setup(app: Any) -> None:
    declared.write(Path(app.srcdir) / "reference")
    app.connect("autodoc-process-docstring", as_text)
