"""Intervals against SciPy; rows and pairs of a table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuewise.studies.statistics import slope_weights, t_interval, t_quantile
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


def test_slope() -> None:
    x, y = [0.0, 1.0, 2.0, 5.0], np.array([1.0, 3.5, 5.0, 6.0])
    assert slope_weights(x) @ y == pytest.approx(np.polyfit(x, y, 1)[0])


def table(**rows: list[float]) -> Table:
    return Table({arm: {s: {"q": v} for s, v in enumerate(values)} for arm, values in rows.items()})


def test_pairs_are_by_seed() -> None:
    t = table(a=[0.1, 0.5, 0.9], b=[0.2, 0.6, 1.0])
    assert t.difference("b", "a", "q") == pytest.approx([0.1, 0.1, 0.1])
    mean, low, high = t_interval(t.difference("b", "a", "q"))
    assert low == pytest.approx(mean) == pytest.approx(high)  # though the arms themselves spread widely


def test_a_missing_value_is_no_number() -> None:
    t = Table({"a": {0: {"q": 1.0}, 1: {}}})
    assert not t.has(["a"], "q")
    assert math.isnan(t.interval("a", "q")[0])
    assert not t.has(["nobody"], "q")
