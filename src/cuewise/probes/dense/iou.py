"""Intersection over union of predicted and true pixels, summed over images, with void pixels left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.data.annotations.annotated import VOID

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class PixelCounts:
    """For each image and class: pixels that are the class and called so, that are it, that are called so."""

    right: Counts  # N×C
    true: Counts
    predicted: Counts

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Classes that occur in the truth: those that the mean is over."""
        return self.true.sum(0) > 0

    def per_class(self, weights: Counts | None = None) -> NDArray[np.float64]:
        """IoU_c = Σ right / Σ (true + predicted − right), NaN where a class occurs in no truth."""
        w = np.ones(len(self.right), np.int64) if weights is None else weights
        right, true, predicted = w @ self.right, w @ self.true, w @ self.predicted
        union = true + predicted - right
        return np.where(true > 0, right / np.maximum(union, 1), np.nan)

    def mean(self, weights: Counts | None = None) -> float:
        """mIoU over the classes that occur in the truth."""
        found = self.per_class(weights)
        return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")

    def accuracy(self, weights: Counts | None = None) -> float:
        """Share of pixels that are called right."""
        w = np.ones(len(self.right), np.int64) if weights is None else weights
        return float((w @ self.right).sum() / max(1, (w @ self.true).sum()))

    def of_images(self) -> NDArray[np.float64]:
        """mIoU of each image by itself, over the classes that it has."""
        union = self.true + self.predicted - self.right
        each = np.where(self.true > 0, self.right / np.maximum(union, 1), np.nan)
        known = np.isfinite(each).any(1)
        out = np.full(len(each), np.nan)
        out[known] = np.nanmean(each[known], axis=1)
        return out


def count_pixels(
    predicted: NDArray[np.uint8], target: NDArray[np.uint8], classes: int
) -> tuple[Counts, Counts, Counts]:
    """right, true, predicted of one image; pixels whose target is VOID are left out of all three."""
    known = target != VOID
    p, t = predicted[known], target[known]
    counts = (np.bincount(v, minlength=classes)[:classes] for v in (p[p == t], t, p))
    right, true, called = counts
    return right, true, called
