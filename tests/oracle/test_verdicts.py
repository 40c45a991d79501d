"""Verdicts against their definition in words, read off made-up intervals; the differences that decide against numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from cuewise.studies.claims import (
    Claim,
    Outcome,
    PairedDifference,
    Verdict,
    above,
    below,
    combined,
    few_seeds,
    interval_text,
    steps,
    word_of,
)
from cuewise.studies.labs import SHAPES
from cuewise.studies.table import Table, of_draw


def expected(sign: int, margin: float, mean: float, low: float, high: float) -> str:
    """The rule in words: turn everything into the claimed direction first."""
    lowest, middle, highest = (low, mean, high) if sign > 0 else (-high, -mean, -low)
    if lowest > margin:
        return "held"
    if highest < 0 and highest < margin:
        return "opposite"
    if middle > margin:
        return "leaning"
    return "not held"


def difference(sign: int, margin: float) -> PairedDifference:
    return PairedDifference("d", (("a", "q"),), lambda row: row, sign, margin)


def test_the_verdict_on_an_interval() -> None:
    """Every order of mean, bounds, margin and zero, ties too."""
    grid = (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3)
    seen = set()
    for sign, margin in itertools.product((1, -1), (-0.1, 0.0, 0.1)):
        for low, mean, high in itertools.combinations_with_replacement(grid, 3):
            found = Outcome(difference(sign, margin), mean, low, high).verdict
            assert found == expected(sign, margin, mean, low, high), (sign, margin, mean, low, high)
            seen.add(found)
    assert seen == {"held", "opposite", "leaning", "not held"}


def test_the_verdict_without_an_interval() -> None:
    """One seed has none: no more than leaning."""
    for sign in (1, -1):
        assert Outcome(difference(sign, 0.0), sign * 0.4, math.nan, math.nan).verdict == "leaning"
        assert Outcome(difference(sign, 0.0), -sign * 0.4, math.nan, math.nan).verdict == "not held"


def test_the_word_on_a_claim() -> None:
    words = ("held", "leaning", "not held", "opposite")
    assert word_of([]) == "not measured"
    for several in itertools.chain.from_iterable(itertools.product(words, repeat=n) for n in (1, 2, 3)):
        if set(several) == {"held"}:
            wanted = "held"
        elif set(several) <= {"held", "leaning"}:
            wanted = "leaning"
        elif set(several) == {"opposite"}:
            wanted = "opposite"
        else:
            wanted = "not held"
        assert word_of(several) == wanted, several


VALUES = {
    "a": {0: {"q": 0.9, "r": 0.1}, 1: {"q": 0.7, "r": 0.3}, 2: {"q": 0.8, "r": 0.4}},
    "b": {0: {"q": 0.2, "r": 0.2}, 1: {"q": 0.1, "r": 0.2}, 2: {"q": 0.4, "r": 0.9}},
    "c": {0: {"q": 0.1, "r": 0.5}, 1: {"q": 0.3, "r": 0.6}, 2: {"q": 0.2, "r": 0.3}},
}
T_TWO = 4.302652729911275  # Student's t at 97.5 % with two degrees of freedom


def interval(values: list[float]) -> tuple[float, float, float]:
    mean = sum(values) / 3
    half = T_TWO * math.sqrt(sum((v - mean) ** 2 for v in values) / 2) / math.sqrt(3)
    return mean, mean - half, mean + half


def judged(*differences: PairedDifference, table: Table | None = None) -> Verdict:
    return Claim("1", "s", "A", lambda lab: differences).judge(table or Table(VALUES), SHAPES)


def paired(arm: str, base: str, quantity: str) -> list[float]:
    return [VALUES[arm][s][quantity] - VALUES[base][s][quantity] for s in range(3)]


def test_differences_are_paired_by_seed() -> None:
    found = judged(above("a", "b", "q"), below("b", "c", "r"), *steps(("a", "b", "c"), "q", -1))
    wanted = [paired("a", "b", "q"), paired("b", "c", "r"), paired("b", "a", "q"), paired("c", "b", "q")]
    assert [(o.mean, o.low, o.high) for o in found.outcomes] == [
        pytest.approx(interval(values)) for values in wanted
    ]
    assert [o.difference.sign for o in found.outcomes] == [1, -1, -1, -1]
    assert [o.difference.label for o in found.outcomes] == ["q: a − b", "r: b − c", "q: b − a", "q: c − b"]
    assert (found.seeds, found.draws, found.over) == (3, 0, "3 seeds")
    assert [o.verdict for o in found.outcomes] == ["held", "leaning", "held", "leaning"]
    assert found.word == "leaning"


def test_a_weighted_sum_of_cells() -> None:
    weights = {("a", "q"): 2.0, ("b", "r"): -0.5, ("c", "q"): 1.0}
    values = [2 * VALUES["a"][s]["q"] - 0.5 * VALUES["b"][s]["r"] + VALUES["c"][s]["q"] for s in range(3)]
    (outcome,) = judged(combined("sum", weights, margin=0.25, because="clearly")).outcomes
    assert (outcome.mean, outcome.low, outcome.high) == pytest.approx(interval(values))
    assert outcome.difference.claimed == "> 0.25 (clearly)"
    assert outcome.difference.sign == 1
    (plain,) = judged(combined("sum", weights)).outcomes
    assert plain.difference.claimed == "> 0"


def test_one_cell_against_a_fixed_value() -> None:
    found = judged(combined("q of a", {("a", "q"): 1.0}, margin=0.3))
    (outcome,) = found.outcomes
    assert (outcome.mean, outcome.low, outcome.high) == pytest.approx(interval([0.9, 0.7, 0.8]))
    assert (found.word, found.seeds) == ("held", 3)
    assert judged(combined("q of a", {("a", "q"): 1.0}, margin=0.6)).word == "leaning"


def test_what_is_claimed() -> None:
    assert above("a", "b", "q").claimed == "> 0"
    assert below("a", "b", "q").claimed == "< 0"
    assert above("a", "b", "q", margin=0.02, because="clearly").claimed == "> 0.02 (clearly)"
    assert above("a", "b", "q", -1, margin=0.02).claimed == "< -0.02"
    assert above("a", "b", "q", -1, margin=-0.02).claimed == "< 0.02"
    assert (above("a", "b", "q").sign, above("a", "b", "q").margin) == (1, 0.0)
    assert PairedDifference("d", (), np.subtract).claimed == "> 0"


def test_rows_of_other_lengths_are_not_measured() -> None:
    short = Table(VALUES | {"b": {0: VALUES["b"][0]}})
    assert judged(above("a", "b", "q"), table=short) == Verdict("not measured")
    lacking = Table(VALUES | {"b": {s: {"r": 0.0} for s in range(3)}})
    assert judged(above("a", "b", "q"), table=lacking).word == "not measured"
    assert judged(above("a", "c", "q"), above("a", "b", "q"), table=lacking).word == "not measured"
    assert judged(above("b", "a", "q"), table=lacking).numbers == "not measured in this lab"
    assert judged().word == "not measured"


def test_a_seed_without_a_number_is_named() -> None:
    """No shape bias where a model chose neither cue: the other seeds alone would be a selection."""
    some = Table({a: {s: {"q": math.nan if a == "b" and s else 0.5} for s in range(3)} for a in "ab"})
    assert some.lacking("b", "q") == [1, 2]
    assert some.lacking("a", "q") == some.lacking("a", "r") == []
    found = judged(above("a", "b", "q"), table=some)
    assert (found.word, found.numbers) == ("not measured", "no number for q of b with seeds 1, 2")


def test_draws_widen_and_are_named() -> None:
    """Hypotenuse of the half-width over seeds and of that over eight draws."""
    shift = [0.00, 0.02, 0.01, 0.03, 0.05, 0.04, 0.02, 0.01]
    drawn = {
        s: row | {of_draw(n, "q"): row["q"] + shift[n] for n in range(8)} for s, row in VALUES["a"].items()
    }
    with_draws = Table(VALUES | {"a": drawn})
    first, second = judged(above("a", "b", "q"), above("b", "c", "q"), table=with_draws).outcomes
    mean, low, high = interval(paired("a", "b", "q"))
    middle = sum(shift) / 8
    extra = 2.364624 * math.sqrt(sum((x - middle) ** 2 for x in shift) / 7)
    assert (first.mean, first.low, first.high) == pytest.approx(
        (mean, mean - math.hypot(mean - low, extra), mean + math.hypot(high - mean, extra))
    )
    assert (second.mean, second.low, second.high) == pytest.approx(interval(paired("b", "c", "q")))
    for order in ([above("a", "b", "q"), above("b", "c", "q")], [above("b", "c", "q"), above("a", "b", "q")]):
        found = judged(*order, table=with_draws)
        assert found.draws == 8
        assert found.over == "3 seeds, 8 draws of the probe's training images"


def test_the_numbers_in_words() -> None:
    outcome = Outcome(above("a", "b", "q"), 0.0311, 0.0119, 0.0501)
    text = "q: a − b +0.031 [+0.012, +0.050], claimed > 0"
    assert str(outcome) == text
    assert Verdict("held", (outcome, outcome), 5).numbers == f"{text}; {text} (5 seeds)"
    assert Verdict("held", (outcome,), 1).over == "1 seed"
    assert Verdict("held").numbers == "not measured in this lab"
    assert Verdict("held").over == "0 seeds"
    assert outcome.as_dict() == {
        "label": "q: a − b",
        "claimed": "> 0",
        "mean": 0.0311,
        "low": 0.0119,
        "high": 0.0501,
        "verdict": "held",
    }
    assert interval_text(-0.5, math.nan, math.nan) == "-0.500"
    assert interval_text(0.5, math.nan, 0.7) == "+0.500"


def test_fewer_than_five_seeds_are_reported() -> None:
    assert few_seeds(5) == few_seeds(6) == ""
    assert few_seeds(4).startswith("4 seeds, and 5 or more are needed")
    assert few_seeds(1).startswith("1 seed, and 5 or more")
