"""Means over seeds with Student's t intervals; least-squares slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64] | Sequence[float]


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


def slope_weights(x: Values) -> NDArray[np.float64]:
    """w with w·y = the least-squares slope of y over x."""
    a = np.asarray(x, np.float64) - np.mean(x)
    return np.asarray(a / (a * a).sum())
