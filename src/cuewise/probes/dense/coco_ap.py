"""COCO's average precision by pycocotools, with the same resamples of images for its interval."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Boxes
from cuewise.probes.dense.boxes_ap import Detections, Ranking, mean_ap, skipped_boxes
from cuewise.probes.dense.points_kernel import HUNDRED_AND_ONE

NEEDS = "COCO's AP is left out: it needs pycocotools (pip install 'cuewise[transfer]')"


class CocoEvaluation:
    """AP over 0.50…0.95, AP50 and AP75 of detections; `values` are pycocotools' own, `mean_ap` takes weights of images."""

    def __init__(self, predicted: Sequence[Detections], true: Sequence[Boxes], classes: int) -> None:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        with contextlib.redirect_stdout(io.StringIO()):  # it reports every phase
            truth = COCO()
            truth.dataset = _document(true, classes)
            truth.createIndex()
            rows = _results(predicted)
            found = truth.loadRes(rows) if rows else _empty(COCO, truth)
            evaluation = COCOeval(truth, found, "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        self.values = [float(v) if v >= 0 else float("nan") for v in evaluation.stats[:3]]
        self.images, self.classes = len(true), classes
        self.rankings = [self._ranked(evaluation, k) for k in range(classes)]

    def _ranked(self, evaluation: Any, k: int) -> Ranking:
        """Detections of class k from the highest score down, as the evaluator matched them: image, right, ignored, positives."""
        per_area = len(evaluation.params.areaRng) * self.images
        own = evaluation.evalImgs[k * per_area : k * per_area + self.images]  # the first area is "all"
        kept = [(i, e) for i, e in enumerate(own) if e is not None]
        thresholds = len(evaluation.params.iouThrs)
        positive = np.zeros(self.images, np.int64)
        image = np.concatenate([np.zeros(0, np.int64), *(np.full(len(e["dtScores"]), i) for i, e in kept)])
        scores = np.concatenate([np.zeros(0), *(e["dtScores"] for _, e in kept)])
        blank = np.zeros((thresholds, 0), bool)
        right, ignored = (
            np.concatenate([blank, *(np.asarray(e[flag], bool).reshape(thresholds, -1) for _, e in kept)], 1)
            for flag in ("dtMatches", "dtIgnore")
        )
        for i, e in kept:
            positive[i] = int((np.asarray(e["gtIgnore"]) == 0).sum())
        order = np.argsort(-scores, kind="mergesort")
        return Ranking(image[order], right[:, order], ignored[:, order], positive)

    def per_class(self, weights: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """C×T: 101-point AP; NaN for classes without objects."""
        return np.stack([r.average_precision(weights, HUNDRED_AND_ONE) for r in self.rankings])

    def mean_ap(self, weights: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """T values: the mean over classes with objects."""
        return mean_ap(self.rankings, weights, HUNDRED_AND_ONE)


def _document(true: Sequence[Boxes], classes: int) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    for i, boxes in enumerate(true):
        for box, k, ignored in zip(
            boxes.corners.tolist(), boxes.classes.tolist(), skipped_boxes(boxes).tolist()
        ):
            width, height = box[2] - box[0], box[3] - box[1]
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": k, "area": width * height,
                                "bbox": [box[0], box[1], width, height], "iscrowd": int(ignored)})  # fmt: skip
    return {
        "info": {},
        "images": [{"id": i} for i in range(len(true))],
        "annotations": annotations,
        "categories": [{"id": k, "name": str(k)} for k in range(classes)],
    }


def _results(predicted: Sequence[Detections]) -> list[dict[str, Any]]:
    return [
        {"image_id": i, "category_id": int(k), "score": float(score),
         "bbox": [float(b[0]), float(b[1]), float(b[2] - b[0]), float(b[3] - b[1])]}
        for i, found in enumerate(predicted)
        for b, k, score in zip(found.corners, found.classes, found.scores)
    ]  # fmt: skip


def _empty(kind: Any, truth: Any) -> Any:
    """Nothing was detected: `loadRes` does not take an empty list."""
    found = kind()
    found.dataset = {**truth.dataset, "annotations": []}
    found.createIndex()
    return found
