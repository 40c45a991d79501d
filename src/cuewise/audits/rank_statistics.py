"""Rank statistics with bootstrap intervals: Spearman's ρ, the area under the ROC curve, average precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.scores import Score

DRAWS = 500
Values = NDArray[np.float64]


def ranks(values: NDArray[Any]) -> Values:
    """Ranks from 1, equal values sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse].astype(np.float64)


def rank_correlation(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Spearman's ρ; NaN where one of them is constant."""
    x, y = ranks(a) - (len(a) + 1) / 2, ranks(b) - (len(b) + 1) / 2
    below = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / below) if below > 0 else float("nan")


def auroc(score: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """Probability that a positive scores above a negative, ties counted half; NaN without both."""
    n, m = int(positive.sum()), int((~positive).sum())
    return float((ranks(score)[positive].sum() - n * (n + 1) / 2) / (n * m)) if n and m else float("nan")


def average_precision(score: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """Mean precision at each positive, from the highest score down; equal scores are one threshold. VOC takes the best precision
    at that recall or more instead: `probes.average_precision`."""
    if not positive.any():
        return float("nan")
    above = [int((score >= s).sum()) for s in score[positive]]
    hits = [int((score[positive] >= s).sum()) for s in score[positive]]
    return float(np.mean(np.array(hits) / np.array(above)))


def spearman(name: str, a: NDArray[Any], b: NDArray[Any], protocol: str, seed: int) -> Score:
    """ρ with its bootstrap interval over rows."""
    return resampled(name, lambda rows: rank_correlation(a[rows], b[rows]), len(a), len(a), protocol, seed)


def resampled(
    name: str, statistic: Callable[[NDArray[np.int64]], float], units: int, n: int, protocol: str, seed: int
) -> Score:
    """A statistic of drawn units with its 95 % bootstrap interval."""
    value = statistic(np.arange(units))
    rng = np.random.default_rng(seed)
    draws = np.array([statistic(rng.integers(units, size=units)) for _ in range(DRAWS)])
    draws = draws[np.isfinite(draws)]
    low, high = np.quantile(draws, [0.025, 0.975]) if len(draws) else (np.nan, np.nan)
    return Score(name, value, min(float(low), value), max(float(high), value), n, protocol)
