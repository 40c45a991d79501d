"""Average precision of detections: matching at several IoUs, and VOC 2007's eleven points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Boxes
from cuewise.probes.dense.points_kernel import ELEVEN, points_ap

THRESHOLDS = np.round(np.arange(0.5, 0.96, 0.05), 2)  # IoU 0.50, 0.55 … 0.95
IGNORED = ("difficult", "crowd")  # flags of boxes that neither have to be found nor count against a detection
Flags = NDArray[np.bool_]
Weights = NDArray[np.int64]


@dataclass(frozen=True)
class Detections:
    """What is detected in one image: corners n×4 in its pixels, classes n, scores n from high to low."""

    corners: NDArray[np.float32]
    classes: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class Ranking:
    """All detections of one class from the highest score down.

    image     n: which image
    right     T×n: finds an object at each threshold; ignored T×n: meets one that does not count
    positive  N: objects to be found in each image
    """

    image: NDArray[np.int64]
    right: Flags
    ignored: Flags
    positive: NDArray[np.int64]

    def average_precision(
        self, weights: Weights | None = None, points: NDArray[np.float64] = ELEVEN
    ) -> NDArray[np.float64]:
        """T values: the mean over recalls 0, 0.1 … 1 of the best precision at that recall or more; NaN without objects."""
        w = np.ones(len(self.positive), np.int64) if weights is None else weights
        total = int(w @ self.positive)
        if not total:
            return np.full(len(self.right), np.nan)
        out = np.empty(len(self.right))
        points_ap(self.image, self.right, self.ignored, w, total, points, out)
        return out


def rank(predicted: Sequence[Detections], true: Sequence[Boxes], k: int) -> Ranking:
    """Match the detections of class k as VOC's kit does: each looks at the object that it overlaps most; the first to
    reach the threshold finds it, later ones are wrong."""
    image, scores, right, ignored = [], [], [], []
    positive = np.zeros(len(true), np.int64)
    for i, (found, boxes) in enumerate(zip(predicted, true)):
        objects = boxes.select(boxes.classes == k)
        skipped = skipped_boxes(objects)
        positive[i] = int((~skipped).sum())
        rows = np.flatnonzero(found.classes == k)
        rows = rows[np.argsort(-found.scores[rows], kind="stable")]
        hit, met = matched(found.corners[rows], objects.corners, skipped)
        image.append(np.full(len(rows), i))
        scores.append(found.scores[rows])
        right.append(hit)
        ignored.append(met)
    order = np.argsort(-np.concatenate(scores), kind="stable") if scores else np.zeros(0, np.int64)
    return Ranking(
        np.concatenate(image)[order],
        np.concatenate(right, axis=1)[:, order],
        np.concatenate(ignored, axis=1)[:, order],
        positive,
    )


def matched(
    corners: NDArray[np.float32], objects: NDArray[np.float32], skipped: Flags
) -> tuple[Flags, Flags]:
    """T×n of one image: detections that find an object, and detections that meet one that does not count."""
    hit, met = np.zeros((2, len(THRESHOLDS), len(corners)), bool)
    if not len(corners) or not len(objects):
        return hit, met
    overlap = iou(corners, objects)
    nearest = overlap.argmax(1)
    best = overlap[np.arange(len(corners)), nearest]
    for t, threshold in enumerate(THRESHOLDS):
        taken = np.zeros(len(objects), bool)
        for d in np.flatnonzero(best >= threshold):
            o = nearest[d]
            met[t, d] = skipped[o]
            hit[t, d] = not skipped[o] and not taken[o]
            taken[o] = True
    return hit, met


def iou(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    """n×m: intersection over union of boxes."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    inside = np.prod(np.maximum(high - low, 0), axis=2)
    area_a, area_b = (np.prod(x[:, 2:] - x[:, :2], axis=1) for x in (a, b))
    return inside / np.maximum(area_a[:, None] + area_b[None] - inside, 1e-12)


def skipped_boxes(boxes: Boxes) -> Flags:
    """Boxes that do not count."""
    out = np.zeros(len(boxes), bool)
    for flag in IGNORED:
        out |= boxes.flags.get(flag, False)
    return out


def mean_ap(
    rankings: Sequence[Ranking],
    weights: Weights | None = None,
    points: NDArray[np.float64] = ELEVEN,
) -> NDArray[np.float64]:
    """T values: mean over the classes that have objects."""
    found = np.stack([r.average_precision(weights, points) for r in rankings])
    there = np.isfinite(found[:, 0])
    return found[there].mean(0) if there.any() else np.full(len(THRESHOLDS), np.nan)


def image_scores(predicted: Sequence[Detections], true: Sequence[Boxes]) -> NDArray[np.float64]:
    """For each image F1 of its detections with a score of 0.5 or more at IoU 0.5; NaN where nothing is to be found."""
    out = np.full(len(true), np.nan)
    for i, (found, boxes) in enumerate(zip(predicted, true)):
        rows = np.flatnonzero(found.scores >= 0.5)
        hits = wrong = wanted = 0
        for k in np.union1d(boxes.classes, found.classes[rows]):
            objects = boxes.select(boxes.classes == k)
            skipped = skipped_boxes(objects)
            hit, met = matched(found.corners[rows][found.classes[rows] == k], objects.corners, skipped)
            hits, wrong = hits + int(hit[0].sum()), wrong + int((~hit[0] & ~met[0]).sum())
            wanted += int((~skipped).sum())
        if wanted:
            out[i] = 2 * hits / (hits + wrong + wanted)
    return out
