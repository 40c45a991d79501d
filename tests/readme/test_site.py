"""The documentation site: pages are made of what members declare, every page is in a menu, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cuewise.audits.audit import AUDITS
from cuewise.cues.registry import cues
from cuewise.methods import methods
from cuewise.parser import build_parser
from cuewise.verbs import VERBS
from tests.readme.test_commands import commands, is_example, words_after_cuewise

pytestmark = pytest.mark.docs

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = [
    p for p in DOCS.rglob("*.md") if not {"_build", "reference", "results"} & set(p.relative_to(DOCS).parts)
]


@pytest.fixture(scope="module")
def declared() -> ModuleType:
    """docs/declared.py."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("declared", DOCS / "declared.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def reference(declared: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "reference"
    declared.write(place, draw=False)
    return place


def test_every_member_has_a_page(reference: Path) -> None:
    for group, members in (("methods", methods()), ("cues", cues()), ("audits", AUDITS.all())):
        listed = (reference / f"{group}.md").read_text(encoding="utf-8")
        for name, member in members.items():
            stem = name.replace("+", "p")
            page = (reference / group / f"{stem}.md").read_text(encoding="utf-8")
            assert page.startswith(f"# {name}\n")
            assert member.equation in page
            assert f"{group}/{stem}\n" in listed  # in the menu


def test_a_page_says_what_is_not_declared(declared: ModuleType) -> None:
    assert "## Equation\n\nNone is declared." in declared.equation("")
    assert "None is declared" in declared.citation("")
    assert "```text\na = b\n```" in declared.equation("a = b")


def test_built_in_methods_declare_equation_and_citation() -> None:
    assert [n for n, m in methods().items() if not (m.equation and m.citation)] == []


def test_commands_of_declared_pages_are_real(reference: Path) -> None:
    found = [c for page in sorted(reference.rglob("*.md")) for c in commands(page) if is_example(c)]
    assert len(found) >= len(methods()) + len(cues()) + len(AUDITS.all())
    for command in found:
        name, *rest = words_after_cuewise(command)
        build_parser(name, VERBS[name]).parse_intermixed_args(rest)


def test_the_glossary_is_that_of_the_report(reference: Path) -> None:
    text = (reference / "glossary.md").read_text(encoding="utf-8")
    assert "Shape bias" in text
    assert "95 % interval" in text
    for audit in AUDITS.all().values():
        assert all(
            kind.title.replace("{}", "…").split("_")[0] in text for kind in audit.kinds if kind.meaning
        )


def test_pictures_of_declared_pages(declared: ModuleType) -> None:
    """One of each kind; the site's build draws them all."""
    assert declared.drawings.cue_picture(cues()["grey"]).width > 300
    plain = declared.drawings.method_picture(methods()["simclr"], {})
    with_negatives = declared.method_drawing(methods()["simclr"])
    assert with_negatives.width > plain.width  # a column for each negative
    assert declared.audit_drawing(AUDITS.get("color")).width > 300
    assert declared.audit_drawing(AUDITS.get("uncertainty")) is None  # no objects on the example images


def menus() -> set[str]:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```{toctree}\n(.*?)```", text, re.S)
    return {line for b in blocks for line in b.splitlines() if line and not line.startswith(":")}


def test_every_page_is_in_the_menu(reference: Path) -> None:
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in WRITTEN} - {"index"}
    made = {f"reference/{p.stem}" for p in reference.glob("*.md")}
    assert menus() == pages | made


def test_links_lead_somewhere(reference: Path) -> None:
    """Also to pages that are made of declarations, and to headings."""
    for page in WRITTEN:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target or target.startswith("#"):
                continue
            path = (page.parent / target.partition("#")[0]).resolve()
            inside = path.relative_to(DOCS) if path.is_relative_to(DOCS) else None
            assert inside is not None, f"{page.name}: {target} is outside the site"
            if inside.parts[0] == "reference":
                path = reference / Path(*inside.parts[1:])
            assert path.exists(), f"{page.name}: {target}"
