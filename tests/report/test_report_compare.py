"""Differences: paired against brute force and known values, unpaired where pairing is not possible."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuewise.audits.run import comparison
from cuewise.report.compare import differences, unpaired
from cuewise.report.page import incomparable
from cuewise.report.paired import binomial_p, bootstrap_bias, mcnemar, outcomes, paired_scores
from cuewise.report.reading import read_audits
from cuewise.scores import Score, proportion


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def table(responses: list[str]) -> dict[str, Any]:
    """Ten-thousand-foot cue conflicts: shape s, texture t, a response each."""
    rows = [[f"i{k}", r, "s", "t"] for k, r in enumerate(responses)]
    return {"columns": ["image", "response", "shape", "texture"], "rows": rows}


def audit(name: str, responses: list[str], protocol: str = "p") -> dict[str, Any]:
    s, t = responses.count("s"), responses.count("t")
    scores = [
        proportion("shape_bias", s, s + t, protocol).as_dict(),
        proportion("knn/photos", s, 100, protocol).as_dict(),
    ]
    return {"model": {"name": name}, "scores": scores, "tables": {"shape_bias/decisions": table(responses)}}


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (2, 9), (5, 10), (9, 9), (3, 4)])
def test_binomial_p_by_enumeration(hits: int, n: int) -> None:
    counts = [sum(throws) for throws in product((0, 1), repeat=n)]
    tail = min(hits, n - hits)
    expected = min(1.0, 2 * sum(c <= tail for c in counts) / 2**n)
    assert binomial_p(hits, n) == pytest.approx(expected)


def test_mcnemar_counts_only_where_the_two_differ() -> None:
    a = [True] * 50 + [False] * 50
    b = [True] * 45 + [False] * 5 + [True] * 25 + [False] * 25
    found = mcnemar(a, b)
    assert (found.base, found.other) == (0.5, 0.7)
    assert found.p == pytest.approx(binomial_p(25, 30))
    assert 0 < found.low < 0.2 < found.high
    same = mcnemar(a, a)
    assert same.p == 1
    assert same.low < 0 < same.high


@pytest.mark.slow
def test_bootstrap_of_the_bias_agrees_with_resampling_images() -> None:
    generator = rng()
    a = generator.choice(["shape", "texture", "other"], 300, p=[0.3, 0.5, 0.2])
    b = np.where(generator.random(300) < 0.7, a, generator.choice(["shape", "texture", "other"], 300))

    def bias(x: np.ndarray[Any, Any]) -> float:
        return float((x == "shape").sum() / np.isin(x, ["shape", "texture"]).sum())

    picks = [generator.integers(0, 300, 300) for _ in range(4000)]
    low, high = np.quantile([bias(b[i]) - bias(a[i]) for i in picks], [0.025, 0.975])
    found = bootstrap_bias(list(a), list(b), rng())
    assert (found.base, found.other) == pytest.approx((bias(a), bias(b)))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.012)


def test_pairing_makes_a_small_steady_gain_clear() -> None:
    base = ["s"] * 40 + ["t"] * 160
    other = ["s"] * 54 + ["t"] * 146
    audits = read_audits([audit("a", base), audit("b", other)], [Path(), Path()])
    bias, knn = differences(audits, rng())
    assert bias.value == pytest.approx(0.07)
    assert bias.clear
    assert "paired over 200 images" in bias.how
    assert not unpaired(audits[0].scores[0], audits[1].scores[0], "a", "b").clear
    assert knn.how == "from the two intervals"


def test_tables_of_other_images_are_not_paired() -> None:
    one, other = table(["s", "t", "s"]), table(["s", "t"])
    assert paired_scores({"shape_bias/decisions": one}, {"shape_bias/decisions": other}, rng()) == {}
    assert paired_scores({"shape_bias/decisions": one}, {}, rng()) == {}


def test_a_table_that_does_not_give_the_score_is_not_used() -> None:
    documents = [audit("a", ["s"] * 30 + ["t"] * 70), audit("b", ["s"] * 60 + ["t"] * 40)]
    documents[1]["scores"][0].update(value=0.9, low=0.8, high=0.95)
    bias = differences(read_audits(documents, [Path(), Path()]), rng())[0]
    assert bias.how == "from the two intervals"
    assert bias.value == pytest.approx(0.6)


def test_outcomes_drop_agreeing_cues_and_keep_repeated_images() -> None:
    rows = [["x", "s", "s", "s"], ["y", "t", "s", "t"], ["y", "q", "s", "t"]]
    got = outcomes({"columns": ["image", "response", "shape", "texture"], "rows": rows})
    assert got == {("y", 1): "texture", ("y", 2): "other"}
    labelled = outcomes({"columns": ["image", "label", "response"], "rows": [["a", 1, 1], ["b", 1, 2]]})
    assert list(labelled.values()) == ["right", "wrong"]
    assert outcomes({"columns": None, "rows": [[1], None, "x"]}) == {}


def test_differing_protocols_are_not_subtracted() -> None:
    documents = [audit("a", ["s", "t"]), audit("b", ["s", "s", "t"], protocol="q")]
    found = differences(read_audits(documents, [Path(), Path()]), rng())
    assert {d.how for d in found} == {"protocols differ"}
    assert all(math.isnan(d.value) for d in found)


@pytest.mark.parametrize("named", ["photos", "drawings"])
def test_lines_for_the_terminal_about_other_images(named: str) -> None:
    """A changed set is said of the scores that name it, and of those that name none."""
    documents = [audit("a", ["s", "t"]), audit("b", ["s", "s", "t"])]
    for hash, document in zip("xy", documents):
        document["data"] = {"test": [{"name": named, "hash": hash}, {"name": "stimuli", "hash": "z"}]}
        document["scores"] = document["scores"][1:]  # knn/photos
    said = "b: test images differ, so that no score can be compared with a"
    assert incomparable(documents) == [said]
    documents[1]["data"]["test"][0]["hash"] = "x"
    assert incomparable(documents) == []


def test_some_scores_of_other_images() -> None:
    documents = [audit("a", ["s", "t"]), audit("b", ["s", "s", "t"])]
    for hash, document in zip("xy", documents):
        document["data"] = {"test": [{"name": "photos", "hash": "z"}, {"name": "stimuli", "hash": hash}]}
    assert incomparable(documents) == ["b: test images differ, so that some scores cannot be compared with a"]


def test_unpaired_interval_covers_as_often_as_it_says() -> None:
    generator, covered = rng(), 0
    for _ in range(1000):
        a, b = generator.binomial(120, 0.1), generator.binomial(80, 0.3)
        d = unpaired(proportion("x", int(a), 120, ""), proportion("x", int(b), 80, ""), "a", "b")
        covered += d.low <= 0.2 <= d.high
    assert 0.93 <= covered / 1000 <= 0.98


def test_a_score_without_interval_gives_no_verdict() -> None:
    a, b = Score("x", 1.0, math.nan, math.nan, 1, ""), Score("x", 2.0, math.nan, math.nan, 1, "")
    assert unpaired(a, b, "a", "b").clear is None


def test_a_damaged_score_is_left_out_of_the_table() -> None:
    """As a stranger's audit.json may have it."""
    one = {"model": {"name": "a"}, "scores": [{"name": "x", "value": 0.5}, {"name": "y"}, {"value": 1.0}]}
    other = {"model": {"name": "b"}, "scores": [{"name": "x", "value": 0.25}, {"name": "y", "value": 0.75}]}
    found = comparison([one, other])["comparison"]
    assert found == {"columns": ["score", "a", "b"], "rows": [["x", 0.5, 0.25], ["y", None, 0.75]]}
