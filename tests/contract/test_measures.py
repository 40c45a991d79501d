"""Every measure and every clue passes the battery of its kind."""

from __future__ import annotations

import pytest

from cuewise.checks import clue, measure
from cuewise.checks.check import Check
from cuewise.inspection.clue import CLUES
from cuewise.studies.measures.measure import MEASURES


@pytest.mark.parametrize("check", clue.CHECKS)
@pytest.mark.parametrize("name", CLUES.summaries())
def test_a_clue_keeps_its_promises(name: str, check: Check) -> None:
    check(CLUES.get(name))


@pytest.mark.parametrize("name", MEASURES.summaries())
def test_a_measure_can_be_taken_somewhere(name: str) -> None:
    for check in measure.CHECKS[:-1]:  # without training
        check(MEASURES.get(name))


@pytest.mark.parametrize("name", ["clean", "heads"])  # the second is for arms of LooC
def test_a_measure_gives_numbers(name: str) -> None:
    assert bool(measure.taken(MEASURES.get(name))) == (name == "clean")
    measure.gives_numbers(MEASURES.get(name))
