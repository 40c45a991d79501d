"""Intervals and rank correlation against SciPy; what a few seeds may say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuewise.studies.statistics import agree, slope, spearman, t_interval, t_quantile
from cuewise.studies.table import Table


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 29])
@pytest.mark.parametrize("p", [0.6, 0.95, 0.975, 0.999])
def test_t_quantile(p: float, freedom: int) -> None:
    assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-9)


def test_t_interval() -> None:
    x = np.random.default_rng(0).normal(3, 2, 5)
    expected = stats.t.interval(0.95, 4, loc=x.mean(), scale=stats.sem(x))
    mean, low, high = t_interval(x)
    assert (mean, low, high) == pytest.approx((x.mean(), *expected))
    assert all(math.isnan(v) for v in t_interval([]))
    assert t_interval([2.0])[0] == 2.0
    assert math.isnan(t_interval([2.0])[1])


@pytest.mark.parametrize("seed", range(5))
def test_spearman(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, 9), rng.integers(0, 6, 9)  # with ties
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)


def test_spearman_of_a_constant_is_unknown() -> None:
    assert math.isnan(spearman([1, 2, 3], [5, 5, 5]))


def test_two_thirds_of_the_seeds() -> None:
    assert agree([0.1, 0.2, -0.05])
    assert not agree([0.1, -0.02, -0.05])
    assert not agree([0.01, 0.01, -0.5])  # most seeds say so, but the mean does not
    assert not agree([])


def test_slope() -> None:
    assert slope([0, 1, 2, 3], [1, 3, 5, 7]) == pytest.approx(2.0)


def table(**rows: list[float]) -> Table:
    return Table({arm: {s: {"q": v} for s, v in enumerate(values)} for arm, values in rows.items()})


def test_trend_by_rank_or_by_sign() -> None:
    up = table(a=[0.1, 0.2, 0.3], b=[0.2, 0.2, 0.4], c=[0.4, 0.5, 0.6])
    trend = up.trend(["a", "b", "c"], "q")
    assert trend.rises
    assert not trend.falls
    assert trend.monotone
    down = up.trend(["c", "b", "a"], "q")
    assert down.falls
    assert not down.rises
    flat = table(a=[0.1, 0.2, 0.3], b=[0.9, 0.9, 0.9], c=[0.09, 0.21, 0.29]).trend(["a", "b", "c"], "q")
    assert not flat.rises
    assert not flat.monotone


def test_pairs_are_by_seed() -> None:
    t = table(a=[0.1, 0.5, 0.9], b=[0.2, 0.6, 1.0])
    assert t.difference("b", "a", "q") == pytest.approx([0.1, 0.1, 0.1])
    mean, low, high = t_interval(t.difference("b", "a", "q"))
    assert low == pytest.approx(mean) == pytest.approx(high)  # though the arms themselves spread widely


def test_a_missing_value_is_no_number() -> None:
    t = Table({"a": {0: {"q": 1.0}, 1: {}}})
    assert not t.has(["a"], "q")
    assert math.isnan(t.mean("a", "q"))
    assert not t.has(["nobody"], "q")
