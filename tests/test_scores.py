"""Scores: intervals against closed forms and SciPy, what JSON gets, and how shares are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuewise.results import plain
from cuewise.scores import Z95, Score, mean, proportion, show_share, show_span


def test_z_is_the_normal_quantile() -> None:
    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-12) == Z95


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 10), (1, 1), (250, 1000)])
def test_a_share_has_wilsons_interval(hits: int, n: int) -> None:
    found = proportion("a", hits, n, "how")
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert (found.value, found.n, found.protocol) == (hits / n, n, "how")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= found.low <= found.value + 1e-12 <= found.high + 2e-12
    assert found.high <= 1


def test_a_mean_has_the_normal_interval() -> None:
    x = np.random.default_rng(0).normal(2.0, 3.0, 40)
    found = mean("a", x, "how")
    half = stats.norm.ppf(0.975) * stats.sem(x)
    assert (found.value, found.low, found.high) == pytest.approx((x.mean(), x.mean() - half, x.mean() + half))
    two = mean("a", [1.0, 2.0], "how")
    assert two.high - two.low == pytest.approx(2 * stats.norm.ppf(0.975) * stats.sem([1.0, 2.0]))
    one = mean("a", [4.0], "how")
    assert (one.value, one.n) == (4.0, 1)
    assert math.isnan(one.low)


def test_nothing_is_no_number_and_json_has_none() -> None:
    for found in (proportion("a", 0, 0, "how"), mean("a", [], "how")):
        assert found.n == 0
        assert all(math.isnan(v) for v in (found.value, found.low, found.high))
        values = found.as_dict()
        assert [values[k] for k in ("value", "low", "high")] == [None] * 3
        assert values["n"] == 0
    score = Score("a", math.inf, 0.5, 1.0, 3, "how")
    assert score.as_dict() == {"name": "a", "value": None, "low": 0.5, "high": 1.0, "n": 3, "protocol": "how"}
    assert score.item() == math.inf


def test_shares_as_shown() -> None:
    assert show_share(0.31442) == "31.4\u00a0%"
    assert show_share(-0.05, unit=False) == "−5.0"
    assert show_span(0.0, 0.359) == "0.0–35.9\u00a0%"
    assert show_span(-0.02, 0.1) == "−2.0 to 10.0\u00a0%"


def test_plain_values() -> None:
    found = plain(
        {"a": [np.float64(1.5), math.nan], "b": (np.int64(2), math.inf), "c": {"d": "x", "e": None}}
    )
    assert found == {"a": [1.5, None], "b": [2, None], "c": {"d": "x", "e": None}}
    assert type(found["b"][0]) is int
