"""docs/results.md: its summary says what its tables say, and its claims and commands are those of the program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cuewise.studies.study import studies

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
ROW = re.compile(r"^\| (\w+)\. (.+?) \| ([ABC]) \| \*\*(held|not held|not measured)\*\* \|", re.MULTILINE)
CHAPTERS = ("Embedded shapes", "Photographs")


def sections() -> list[tuple[str, str, str]]:
    """(chapter, title, text) of every section that has a table of claims."""
    found = []
    for chapter in re.split(r"^# ", PAGE, flags=re.MULTILINE)[1:]:
        name = next((c for c in CHAPTERS if chapter.startswith(c)), None)
        for text in re.split(r"^## ", chapter, flags=re.MULTILINE)[1:] if name else ():
            found.append((str(name), text.splitlines()[0], text))
    return found


def column(chapter: str, title: str, text: str) -> str:
    if chapter == "Embedded shapes":
        return "shapes, in colour" if title == "ns-alpha-color" else "shapes"
    return "photographs, SimCLR" if "--method simclr" in text else "photographs"


def measured() -> dict[tuple[str, str], str]:
    """(claim, column) → verdict, of all tables."""
    out: dict[tuple[str, str], str] = {}
    for where in sections():
        for number, _, _, verdict in ROW.findall(where[2]):
            if verdict != "not measured":
                assert (number, column(*where)) not in out, (number, where[1])
                out[number, column(*where)] = verdict
    return out


def summary() -> dict[tuple[str, str], str]:
    lines = [line for line in PAGE.split("# Embedded shapes")[0].splitlines() if line.startswith("| ")]
    columns = [c.strip() for c in lines[0].strip("|").split("|")][1:]
    out = {}
    for line in lines[2:]:
        first, *cells = (c.strip() for c in line.strip("|").split("|"))
        out |= {(first.split(".")[0], c): cell for c, cell in zip(columns, cells, strict=True) if cell != "–"}
    return out


def test_the_summary_is_the_sum_of_the_tables() -> None:
    assert len(measured()) > 40
    assert summary() == measured()


@pytest.mark.parametrize("where", sections(), ids=lambda w: f"{w[0]}-{w[1]}")
def test_claims_are_those_of_the_study(where: tuple[str, str, str]) -> None:
    known = {(c.number, c.sentence, c.strength) for c in studies()[where[1].split()[0]].claims}
    found = [row[:3] for row in ROW.findall(where[2])]
    assert found
    assert set(found) <= known


def test_commands_name_studies_that_exist() -> None:
    commands = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("    cuewise reproduce")]
    assert len(commands) > 8
    for words in commands:
        names = words[2 : next(i for i, w in enumerate(words) if w.startswith("--"))]
        assert names
        assert set(names) <= set(studies())
