"""Rank statistics against SciPy and loops; bootstrap intervals against the normal approximation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from cuewise.audits.rank_statistics import (
    auroc,
    average_precision,
    rank_correlation,
    ranks,
    resampled,
    spearman,
)


def values(n: int, seed: int, ties: bool) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=n)
    return np.round(x) if ties else x


@pytest.mark.parametrize("ties", [False, True])
def test_ranks_and_spearman(ties: bool) -> None:
    a, b = values(30, 0, ties), values(30, 1, ties)
    assert ranks(a).tolist() == stats.rankdata(a).tolist()
    assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert rank_correlation(a, a) == pytest.approx(1)
    assert math.isnan(rank_correlation(a, np.ones(30)))


@pytest.mark.parametrize("ties", [False, True])
def test_auroc(ties: bool) -> None:
    score, positive = values(24, 2, ties), np.arange(24) % 3 == 0
    pairs = [np.sign(p - q) / 2 + 0.5 for p in score[positive] for q in score[~positive]]
    assert auroc(score, positive) == pytest.approx(np.mean(pairs))
    assert math.isnan(auroc(score, np.ones(24, bool)))
    assert math.isnan(auroc(score, np.zeros(24, bool)))
    assert auroc(np.array([0.0, 1.0]), np.array([False, True])) == 1.0


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_average_precision_is_that_of_scikit_learn(ties: bool, seed: int) -> None:
    score, positive = values(25, seed, ties), np.random.default_rng(seed).random(25) < 0.4
    found = average_precision(score, positive)
    assert found == pytest.approx(average_precision_score(positive, score))
    back = slice(None, None, -1)
    assert average_precision(score[back], positive[back]) == pytest.approx(found)


def test_equal_scores_are_one_threshold() -> None:
    score, positive = np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, False, True, True])
    assert average_precision(score, positive) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)
    assert math.isnan(average_precision(score, np.zeros(4, bool)))


def test_an_interval_by_bootstrap() -> None:
    x = np.random.default_rng(3).normal(size=400)
    found = resampled("m", lambda rows: float(x[rows].mean()), 400, 7, "how", seed=0)
    half = 1.96 * stats.sem(x)
    assert (found.value, found.n) == (pytest.approx(x.mean()), 7)
    assert (found.low, found.high) == (
        pytest.approx(x.mean() - half, abs=0.02),
        pytest.approx(x.mean() + half, abs=0.02),
    )
    assert found == resampled("m", lambda rows: float(x[rows].mean()), 400, 7, "how", seed=0)
    assert found != resampled("m", lambda rows: float(x[rows].mean()), 400, 7, "how", seed=1)
    never = resampled("m", lambda rows: math.nan, 5, 5, "how", seed=0)
    assert math.isnan(never.value)


def test_the_interval_holds_the_value() -> None:
    """Drawn rows repeat, so that a statistic of distinct rows can lie outside of all draws."""
    found = resampled("d", lambda rows: float(len(set(rows.tolist()))), 20, 20, "how", seed=0)
    assert found.value == found.high == 20
    found = resampled("d", lambda rows: -float(len(set(rows.tolist()))), 20, 20, "how", seed=0)
    assert found.value == found.low == -20


def test_spearman_as_a_score() -> None:
    a, b = values(50, 4, False), values(50, 5, False)
    found = spearman("ρ", a, a + b, "how", seed=0)
    assert found.value == pytest.approx(stats.spearmanr(a, a + b).statistic)
    assert -1 <= found.low < found.value < found.high <= 1
    assert found.n == 50
