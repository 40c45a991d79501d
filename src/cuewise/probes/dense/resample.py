"""Intervals over images: one set of resamples for all scores and all encoders, so that differences are paired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cuewise.scores import Z95, Score, proportion

RESAMPLES = 300
EQUAL = 1e-9
ALL_EQUAL = "interval by Wilson over images, as all resamples are equal"
Draws = NDArray[np.float64]
Weights = NDArray[np.int64]  # how often each image counts


def resamples(images: int, seed: int, count: int = RESAMPLES) -> list[Weights]:
    """`count` draws of as many images with replacement; the same for the same seed and number of images."""
    rng = np.random.default_rng([seed, images])
    return [np.bincount(rng.integers(0, images, images), minlength=images) for _ in range(count)]


def scored(
    name: str,
    images: int,
    protocol: str,
    measure: Callable[[Weights], float],
    seed: int,
    count: int = RESAMPLES,
) -> tuple[Score, Draws]:
    """measure(1, 1, …) ± 1.96 deviations of the measure over resamples of images, and its draws."""
    value = measure(np.ones(images, np.int64))
    draws = np.array([measure(w) for w in resamples(images, seed, count)])
    return with_interval(name, value, draws, images, protocol), draws


def with_interval(name: str, value: float, draws: Draws, images: int, protocol: str) -> Score:
    """Resamples repeat images, which moves such measures as a whole: their spread is used, not their place.

    Where all are equal they say nothing, and Wilson's interval of value × n of n images is taken: of 0 of n for a score of 0.
    """
    known = draws[np.isfinite(draws)]
    if np.isfinite(value) and len(known) and float(np.ptp(known)) <= EQUAL:
        found = proportion(name, round(value * images), images, f"{protocol}; {ALL_EQUAL}")
        return replace(found, value=value, low=min(found.low, value), high=max(found.high, value))
    half = _half(draws, images)
    return Score(name, value, max(0.0, value - half), min(1.0, value + half), images, protocol)


def difference(
    name: str, a: tuple[float, Draws], b: tuple[float, Draws], images: int, protocol: str
) -> Score:
    """a − b with the interval of the paired draws."""
    value, half = a[0] - b[0], _half(a[1] - b[1], images)
    return Score(name, value, value - half, value + half, images, protocol)


def _half(draws: Draws, images: int) -> float:
    """Half of the interval that draws give."""
    known = draws[np.isfinite(draws)]
    return Z95 * float(known.std(ddof=1)) if images > 1 and len(known) > 1 else float("nan")
