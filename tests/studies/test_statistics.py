"""Intervals against SciPy; rows and pairs of a table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cuewise.probes.draws import DRAWS
from cuewise.studies.claims import Claim, above
from cuewise.studies.labs import SHAPES
from cuewise.studies.statistics import slope_weights, t_interval, t_quantile
from cuewise.studies.table import Table, of_draw
from cuewise.studies.writing import _table


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
    mean, low, high = t.difference("b", "a", "q")
    assert mean == pytest.approx(0.1)
    assert low == pytest.approx(mean) == pytest.approx(high)  # though the arms themselves spread widely


def test_a_missing_value_is_no_number() -> None:
    t = Table({"a": {0: {"q": 1.0}, 1: {}}})
    assert not t.has(["a"], "q")
    assert math.isnan(t.interval("a", "q")[0])
    assert not t.has(["nobody"], "q")


def test_an_interval_is_over_seeds_and_training_images() -> None:
    """The draws of a probe's training images are shared by all seeds: their scatter is added, however many seeds there are."""
    values = {"a": [0.6, 0.62, 0.58, 0.61, 0.59], "b": [0.5, 0.5, 0.5, 0.5, 0.5]}
    shift = np.linspace(-0.04, 0.04, DRAWS)

    def table(moved: float) -> Table:
        return Table(
            {
                arm: {
                    s: {"q": v}
                    | {of_draw(b, "q"): v + d * (moved if arm == "a" else 1.0) for b, d in enumerate(shift)}
                    for s, v in enumerate(row)
                }
                for arm, row in values.items()
            }
        )

    plain = Table({a: {s: {"q": v} for s, v in enumerate(row)} for a, row in values.items()})
    mean, low, high = plain.difference("a", "b", "q")
    assert table(1.0).difference("a", "b", "q") == pytest.approx(
        (mean, low, high)
    )  # all arms move alike: paired
    wide = table(3.0).difference("a", "b", "q")
    half = np.hypot(high - mean, stats.t.ppf(0.975, DRAWS - 1) * 2 * shift.std(ddof=1))
    assert wide == pytest.approx((mean, mean - half, mean + half))
    assert table(3.0).quantities == ["q"]
    claim = Claim("1", "a is above b", "A", lambda lab: [above("a", "b", "q")])
    words = [claim.judge(t, SHAPES) for t in (plain, table(1.0), table(3.0))]
    assert [w.word for w in words] == ["held", "held", "leaning"]
    assert [w.over for w in words] == ["5 seeds"] + ["5 seeds, 8 draws of the probe's training images"] * 2


@pytest.mark.parametrize("missing", [None, (None, None, None), (math.nan, math.nan, math.nan)])
def test_what_an_arm_does_not_have_is_a_dash(missing: object) -> None:
    arms = [{"name": "a", "means": {"error": missing}}, {"name": "b", "means": {"error": (0.5, 0.4, 0.6)}}]
    rows = _table({"quantities": ["error"], "arms": arms, "base": "b"}, "means")
    assert rows[-1] == "| error | – | 0.500 ± 0.100 |"
