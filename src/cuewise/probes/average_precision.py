"""Average precision of ranked images as VOC defines it: precision at a recall is the best one at that recall or more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.scores import Z95, Score

Targets = NDArray[np.int8]  # N×C: 1 present, 0 absent, −1 not counted ("difficult")
VARIANTS = ("area", "11point")
RESAMPLES = 500


def _from_ranking(
    score: NDArray[Any], positive: NDArray[np.bool_], weight: NDArray[Any], variant: str
) -> float:
    """AP of one class; NaN without a positive. Equal scores are one threshold, in any order; `weight` is how often a row counts.

    variant  area: Σ (r_i − r_{i−1}) max_{j ≥ i} p_j, VOC since 2010; 11point: mean of max_{r ≥ t} p at t = 0, 0.1 … 1
    """
    hits, seen = np.cumsum(weight * positive), np.cumsum(weight)
    if len(hits) == 0 or hits[-1] == 0:
        return float("nan")
    last = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)  # ends of runs of equal scores
    last = last[seen[last] > 0]
    recall, precision = hits[last] / hits[-1], hits[last] / seen[last]
    best = np.maximum.accumulate(precision[::-1])[::-1]  # best precision at this recall or more
    if variant == "area":
        return float(np.sum(np.diff(recall, prepend=0.0) * best))
    reached = np.searchsorted(recall, np.arange(11) / 10 - 1e-12)
    return float(np.mean(best[np.minimum(reached, len(best) - 1)]))


def mean_average_precision(
    scores: NDArray[Any],
    targets: Targets,
    name: str,
    protocol: str,
    variant: str = "area",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Score:
    """mAP over the classes with a positive, ± 1.96 deviations of a bootstrap over images.

    scores   N×C, larger means more likely
    variant  area or 11point, see `_from_ranking`
    """
    n, classes = targets.shape
    judged = [c for c in range(classes) if (targets[:, c] == 1).any()]
    if not judged:
        return Score(name, float("nan"), float("nan"), float("nan"), n, protocol)
    ranked = [_ranked(scores[:, c], targets[:, c]) for c in judged]
    value = float(np.mean([_from_ranking(s, p, np.ones(len(s)), variant) for _, s, p in ranked]))
    rng = np.random.default_rng(seed)
    draws: list[float] = []
    for _ in range(resamples):
        weight = np.bincount(rng.integers(0, n, n), minlength=n)
        found = np.array([_from_ranking(s, p, weight[rows], variant) for rows, s, p in ranked])
        found = found[~np.isnan(found)]  # a resample may miss a rare class
        draws += [float(found.mean())] if len(found) else []
    # resamples repeat images, which lifts AP as a whole: their spread is used, not their place
    half = Z95 * float(np.std(draws, ddof=1)) if len(draws) > 1 else float("nan")
    return Score(name, value, max(0.0, value - half), min(1.0, value + half), n, protocol)


def _ranked(
    score: NDArray[Any], target: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]:
    """Rows that count from the highest score down, their scores, and which of them are positive."""
    rows = np.flatnonzero(target >= 0)
    rows = rows[np.argsort(-score[rows], kind="stable")]
    return rows, score[rows], target[rows] == 1
