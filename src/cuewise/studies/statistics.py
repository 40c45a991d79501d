"""What a few seeds allow to say: means with t intervals, rank correlation, the sign of paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64] | Sequence[float]
ENOUGH = 2 / 3  # of the seeds must agree on a sign
MONOTONE = 0.8  # Spearman's ρ from which a curve counts as rising


def t_interval(values: Values, level: float = 0.95) -> tuple[float, float, float]:
    """(mean, low, high): the interval of the mean by Student's t; NaN ends for a single value."""
    x = np.asarray(values, np.float64)
    if not len(x):
        return math.nan, math.nan, math.nan
    mean = float(x.mean())
    if len(x) < 2:
        return mean, math.nan, math.nan
    half = t_quantile((1 + level) / 2, len(x) - 1) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return mean, mean - half, mean + half


@lru_cache(maxsize=64)
def t_quantile(p: float, freedom: int) -> float:
    """The p-quantile (p > ½) of Student's t with a whole number of degrees of freedom, by bisection."""
    low, high = 0.0, 1.0
    while 0.5 + t_within(high, freedom) / 2 < p:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        if 0.5 + t_within(middle, freedom) / 2 < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_within(t: float, freedom: int) -> float:
    """P(|T| < t) as the finite sum that holds for whole degrees of freedom (Abramowitz and Stegun 26.7.3–4)."""
    theta = math.atan(t / math.sqrt(freedom))
    c, s = math.cos(theta), math.sin(theta)
    if freedom == 1:
        return 2 * theta / math.pi
    term = total = c if freedom % 2 else 1.0
    for k in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= c * c * ((k - 1) / k)
        total += term
    return 2 / math.pi * (theta + s * total) if freedom % 2 else s * total


def ranks(values: Values) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    x = np.asarray(values, np.float64)
    return np.array([(x < v).sum() + ((x == v).sum() + 1) / 2 for v in x])


def spearman(x: Values, y: Values) -> float:
    """Spearman's ρ: the correlation of the ranks; NaN where one side is constant."""
    a, b = ranks(x), ranks(y)
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size else math.nan


def agree(differences: Values) -> bool:
    """Whether the mean difference is positive and at least two thirds of the seeds say so."""
    d = np.asarray(differences, np.float64)
    return len(d) > 0 and bool(d.mean() > 0) and float((d > 0).mean()) >= ENOUGH - 1e-9


def slope(x: Values, y: Values) -> float:
    """The least-squares slope of y over x."""
    a = np.asarray(x, np.float64) - np.mean(x)
    return float((a * np.asarray(y, np.float64)).sum() / (a * a).sum())


def plain(value: Any) -> Any:
    """Numbers that JSON has: NaN and infinity become None."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.floating | np.integer):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
