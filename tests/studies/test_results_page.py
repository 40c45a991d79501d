"""docs/results.md: every verdict follows by the program's own rule from the numbers on the page, which agree with its tables."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cuewise.studies.claims import (
    HELD,
    LEANING,
    NOT_HELD,
    OPPOSITE,
    Claim,
    Outcome,
    PairedDifference,
    word_of,
)
from cuewise.studies.labs import PHOTOGRAPHS, SHAPES, Lab
from cuewise.studies.study import studies

pytestmark = pytest.mark.docs

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
AGAIN = "not judged again"
ROW = re.compile(r"^\| (\w+)\. (.+?) \| ([ABC]) \| \*\*(.+?)\*\* \| (.+) \|$", re.MULTILINE)
GLANCE = re.compile(r"^\| (\w+)\. (.+?) \| (.+?) \| \*\*(.+?)\*\* \| (\d+) \| (.+) \|$", re.MULTILINE)
SEEDS = re.compile(r" \((\d+) seeds\)")
NUMBER = re.compile(r"[+-]\d+\.\d+")
LABS = {
    "shapes": SHAPES,
    "shapes, in colour": SHAPES,
    "photographs": PHOTOGRAPHS,
    "photographs, SimCLR": replace(PHOTOGRAPHS, main="simclr"),
}


def sections() -> list[tuple[str, str, str]]:
    """(lab, title, text) of every section that has a table of claims."""
    found = []
    for chapter in re.split(r"^# ", PAGE, flags=re.MULTILINE)[2:]:
        for text in re.split(r"^## ", chapter, flags=re.MULTILINE)[1:]:
            title = text.splitlines()[0]
            if chapter.startswith("Embedded"):
                lab = "shapes, in colour" if title == "ns-alpha-color" else "shapes"
            else:
                lab = "photographs, SimCLR" if "--method simclr" in text else "photographs"
            found.append((lab, title, text))
    return found


def split(text: str) -> tuple[str, int, str]:
    """(decisive numbers, seeds, what is said behind them)."""
    numbers, seeds, rest = SEEDS.split(text)
    return numbers, int(seeds), rest


def rows(text: str) -> list[tuple[Claim, str, str]]:
    """(claim of the program, verdict, numbers) of a section's measured claims."""
    known = {c.number: c for c in studies()[text.split()[0]].claims}
    out = []
    for number, sentence, strength, verdict, numbers in ROW.findall(text):
        assert (known[number].sentence, known[number].strength) == (sentence, strength)
        if verdict != "not measured":
            out.append((known[number], verdict, numbers))
    return out


def possible(difference: PairedDifference, said: str) -> tuple[set[str], tuple[float, ...]]:
    """The verdicts that the numbers of one decisive difference allow, and the numbers."""
    label, _, claimed = said.rpartition(", claimed ")
    assert label.startswith(difference.label)
    assert claimed == difference.claimed
    numbers = tuple(map(float, NUMBER.findall(label.removeprefix(difference.label))))
    if len(numbers) == 3:
        return {Outcome(difference, *numbers).verdict}, numbers
    if not numbers:
        return {HELD, LEANING, NOT_HELD, OPPOSITE}, numbers
    beyond = difference.sign * numbers[0] > difference.margin
    return ({HELD, LEANING} if beyond else {NOT_HELD, OPPOSITE}), numbers


@pytest.mark.parametrize("where", sections(), ids=lambda w: f"{w[0]}-{w[1]}")
def test_verdicts_follow_from_the_numbers(where: tuple[str, str, str]) -> None:
    lab: Lab = LABS[where[0]]
    judged = rows(where[2])
    assert judged
    for claim, verdict, text in judged:
        numbers, seeds, rest = split(text)
        assert seeds >= 3
        parts, differences = numbers.split("; "), claim.differences(lab)
        options = [possible(d, part)[0] for d, part in zip(differences, parts, strict=True)]
        words = {word_of(o) for o in product(*options)}
        assert verdict == (AGAIN if len(words) > 1 else words.pop()), (claim.number, text)
        assert rest == ("; per-seed numbers were not kept" if verdict == AGAIN else "")


def cells(text: str, kind: str) -> dict[tuple[str, str], str]:
    """(arm, quantity) → cell, of the table of means or of paired differences."""
    head, _, tail = text.partition("Paired differences to ")
    lines = (head if kind == "means" else tail).splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("| | ")), None)
    if start is None:
        return {}
    arms = [c.strip() for c in lines[start].strip("|").split("|")][1:]
    out = {}
    for line in lines[start + 2 :]:
        quantity, *values = (c.strip() for c in line.strip("|").split("|"))
        if not line.startswith("|"):
            break
        out |= {(a, quantity): v for a, v in zip(arms, values, strict=True)}
    return out


@pytest.mark.parametrize("where", sections(), ids=lambda w: f"{w[0]}-{w[1]}")
def test_decisive_numbers_are_those_of_the_tables(where: tuple[str, str, str]) -> None:
    """Means to the last digit that rounding leaves; intervals wherever the table of differences has them."""
    means, paired = cells(where[2], "means"), cells(where[2], "differences")
    for claim, _, text in rows(where[2]):
        for d, part in zip(claim.differences(LABS[where[0]]), split(text)[0].split("; ")):
            _, numbers = possible(d, part)
            if not numbers:
                continue
            values = [[float(means[c].split()[0])] for c in d.cells]
            assert numbers[0] == pytest.approx(d.of(*values)[0], abs=0.0021), (claim.number, part)
            table = NUMBER.findall(paired.get(d.cells[0], ""))
            base = where[2].partition("Paired differences to ")[2].partition(":")[0]
            if len(d.cells) == 2 and d.cells[1] == (base, d.cells[0][1]) and table:
                assert numbers == tuple(map(float, table)), (claim.number, part)


def test_the_glance_is_the_sum_of_the_tables() -> None:
    expected = {
        (claim.number, lab): (claim.sentence, verdict, split(text)[1], re.sub(r", claimed [^;]*(?=;|$)", "", split(text)[0]))
        for lab, _, section in sections()
        for claim, verdict, text in rows(section)
    }  # fmt: skip
    glance = GLANCE.findall(PAGE.split("# Embedded shapes")[0])
    found = {
        (number, lab): (sentence, verdict, int(seeds), numbers)
        for number, sentence, lab, verdict, seeds, numbers in glance
    }
    assert len(glance) == len(found) > 60
    assert found == expected


def test_commands_name_studies_that_exist() -> None:
    commands = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("    cuewise reproduce")]
    assert len(commands) > 8
    for words in commands:
        names = words[2 : next(i for i, w in enumerate(words) if w.startswith("--"))]
        assert names
        assert set(names) <= set(studies())
