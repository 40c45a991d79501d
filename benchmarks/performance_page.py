"""docs/performance.md and docs/growth.md, from the rows that benchmarks stored in docs/performance/."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from growth_page import growth_page, growth_svg
from row import Row, short

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORED, PAGE = DOCS / "performance", DOCS / "performance.md"
README = DOCS.parent / "README.md"
AUDIT_TIME = re.compile(r"(?<=2,000 images of 96 pixels took )[\d.]+(?= minutes on two cores)")
GROWTH, CURVES = DOCS / "growth.md", DOCS / "images" / "growth.svg"
TITLES = {  # section → benchmarks, in order
    "Training": (
        "step", "methods", "layout", "looc", "can", "suppress", "object_crops", "pretrain", "detect", "memory", "page_faults",
        "first_batch",
    ),
    "Images": ("views", "cues", "corruptions", "boxes", "shapes", "make", "index"),
    "Measuring": ("audit", "probe", "solver", "inspection"),
    "Scaling": ("scaling", "growth"),
}  # fmt: skip
TOP = """# Performance

Written by `make bench` (`python benchmarks/run.py [NAME…]` for some rows); no number in its tables is typed by hand. Ratios are
against the named peer or bound, in turns within one run: the median, and the least and the greatest of all repetitions. Each
table says when, at which commit and on how many cores it was measured; *load* is the system's before the benchmark began.
[performance-notes.md](performance-notes.md) has what was measured before this page was written by a script, and what limits each.
"""


def stored() -> dict[str, dict[str, Any]]:
    """name → what is stored of the benchmark."""
    return {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in sorted(STORED.glob("*.json"))}


def table(content: dict[str, Any]) -> str:
    """One benchmark: its command, and a line per row."""
    goals = any(r["goal"] for r in content["rows"])
    lines = [
        f"`{content['command']}`, {content['date']}, commit {content['commit']}, {content['cores']} cores, "
        f"load {content['load']}:",
        "",
        "| what | against | result |" + (" goal |" if goals else ""),
        "| --- | --- | --- |" + (" --- |" if goals else ""),
    ]
    for values in content["rows"]:
        row = Row(**values)
        verdict = {None: "", True: f"{row.goal}: met", False: f"{row.goal}: **missed**"}[row.met()]
        cells = [row.what, row.against, row.result(), *([verdict] if goals else [])]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """The whole page; a benchmark that no section names comes last."""
    found = stored()
    named = {name for names in TITLES.values() for name in names}
    sections = {**TITLES, "Others": tuple(n for n in found if n not in named)}
    parts = [TOP]
    for title, names in sections.items():
        tables = [table(found[name]) for name in names if name in found]
        if tables:
            parts += [f"## {title}\n", "\n\n".join(tables) + "\n"]
    return "\n".join(parts)


def readme() -> str:
    """The README with the time of a whole audit as it is stored."""
    rows = [Row(**r) for r in stored()["audit"]["rows"]]
    took = next(r for r in rows if r.unit == "min" and "(the default)" in r.what)
    return AUDIT_TIME.sub(short(statistics.median(took.values)), README.read_text(encoding="utf-8"))


def write_page() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    if "audit" in stored():
        README.write_text(readme(), encoding="utf-8")
    if growth := stored().get("growth"):
        GROWTH.write_text(growth_page(growth), encoding="utf-8")
        CURVES.write_text(growth_svg(growth), encoding="utf-8")
