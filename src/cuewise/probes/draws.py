"""How a probe's score scatters with its training images: the probe again on random halves of them.

A random half without replacement moves a smooth statistic by the same variance as new training images would:
σ²/m · (1 − m/n) = σ²/n at m = n/2. The halves depend on labels and seed alone, so that they are the same for all models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cuewise.probes.probe import Labels
from cuewise.scores import Z95, Score

DRAWS = 8  # halves of the training images
T95 = 2.3646242510102993  # Student's t at 97.5 % with DRAWS − 1 degrees of freedom
OVER_BOTH = f"interval over test images and {DRAWS} draws of the training images"
Values = Sequence[float] | NDArray[np.float64]


def halves(labels: Labels, seed: int, groups: Labels | None = None, count: int = DRAWS) -> list[Labels]:
    """`count` random halves of each class, an odd image in or out by chance; a class keeps at least one image.

    With groups (versions of one image) halves of the groups are drawn, whatever their classes.
    """
    rng = np.random.default_rng([seed, len(labels), 11])
    if groups is not None:
        units = np.unique(groups)
        return [
            np.flatnonzero(np.isin(groups, rng.permutation(units)[: max(1, len(units) // 2)]))
            for _ in range(count)
        ]
    by_class = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    out = []
    for _ in range(count):
        sizes = [max(1, (len(rows) + int(rng.integers(2))) // 2) for rows in by_class]
        out.append(np.sort(np.concatenate([rng.permutation(r)[:m] for r, m in zip(by_class, sizes)])))
    return out


def scatter(values: Values) -> float:
    """Half the 95 % interval that the draws of a score give."""
    x = np.asarray(values, np.float64)
    return T95 * float(x.std(ddof=1)) if len(x) == DRAWS and np.isfinite(x).all() else 0.0


def over_both(score: Score, values: Values) -> Score:
    """A score over test images, with the scatter over draws of the training images added to its interval."""
    extra = scatter(values)
    if len(values) != DRAWS or not np.isfinite(score.value):
        return score
    low = score.value - np.hypot(score.value - score.low, extra)
    high = score.value + np.hypot(score.high - score.value, extra)
    return replace(
        score,
        low=max(0.0, float(low)),
        high=min(1.0, float(high)),
        protocol=f"{score.protocol}; {OVER_BOTH}",
        draws=tuple(float(v) for v in values),
    )


def both_ways(
    hits: NDArray[np.float64], drawn: NDArray[np.float64], weights: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """A score over resamples of the test images, each with another draw of the training images.

    hits     N, of the probe on the whole training set
    drawn    B×N, of the probes on its halves; deviations from their mean are enlarged to what Student's t gives for B of
             them, since the spread of the result is read with the normal quantile
    weights  how often each test image counts
    """
    if not len(drawn):
        return np.array([w @ hits / len(hits) for w in weights])
    large = T95 / Z95 * np.sqrt(len(drawn) / (len(drawn) - 1))
    rows = hits + large * (drawn - drawn.mean(0))
    return np.array([w @ rows[i % len(rows)] / len(hits) for i, w in enumerate(weights)])
