"""Average precision at given recalls from a ranking, compiled: it is computed for every resample of the images."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

ELEVEN = np.arange(11) / 10 - 1e-12  # a recall of exactly k/10 counts
HUNDRED_AND_ONE = np.linspace(0, 1, 101)  # as pycocotools compares them


@njit(cache=True, nogil=True)
def points_ap(
    image: NDArray[np.int64],
    right: NDArray[np.bool_],
    ignored: NDArray[np.bool_],
    weights: NDArray[np.int64],
    total: int,
    points: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """out[t]: mean over recalls `points` of the best precision at that recall or more.

    image    n: of each detection, from the highest score down; weights: how often each image counts
    right    T×n: finds an object; ignored T×n: counts neither way
    total    objects to be found, > 0
    """
    n = len(image)
    recall, best = np.zeros(n), np.zeros(n)
    for t in range(len(right)):
        found, wrong = 0, 0
        for k in range(n):
            if not ignored[t, k]:
                if right[t, k]:
                    found += weights[image[k]]
                else:
                    wrong += weights[image[k]]
            recall[k] = found / total
            best[k] = found / max(found + wrong, 1)
        for k in range(n - 2, -1, -1):
            best[k] = max(best[k], best[k + 1])
        at, area = 0, 0.0
        for point in points:
            while at < n and recall[at] < point:
                at += 1
            if at < n:
                area += best[at]
        out[t] = area / len(points)
