"""`cuewise probe detect`: Faster R-CNN on the encoder; average precision as VOC 2007 and as COCO count it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from cuewise.data import Boxes, Dataset, open_data
from cuewise.errors import UserError
from cuewise.probes.dense.boxes_ap import THRESHOLDS, Detections, Ranking, image_scores, mean_ap, rank
from cuewise.probes.dense.coco_ap import NEEDS, CocoEvaluation
from cuewise.probes.dense.detector import Detector, DetectorHeads, best_body, span
from cuewise.probes.dense.drawing import Shot, box_panels, worst_and_best
from cuewise.probes.dense.resample import RESAMPLES, resamples, with_interval
from cuewise.probes.dense.schedule import DenseSchedule, changed
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.task import HELD_OUT, Task
from cuewise.scores import Score

# moco: R50-C4 as MoCo and DenseCL train it; short: Mishra et al. for supervised and Jigsaw; small: ours, for a CPU
SCHEDULES = {
    "small": DenseSchedule(0.04, 8, 8, warmup=0.1, drops=(0.75, 0.92), clip=10.0),
    "moco": DenseSchedule(0.02, 16, None, 24_000, warmup=100 / 24_000, drops=(18 / 24, 22 / 24)),
    "short": DenseSchedule(0.001, 2, 10, reference=2),
}
HEADS = {
    "small": DetectorHeads(64, 128, 64, 64, (200, 200)),
    "moco": DetectorHeads(),
    "short": DetectorHeads(),
}
BODIES = {"small": "fpn", "moco": "c4", "short": "fpn"}
SIZES = {"moco": 800, "short": 600}
SCALES = {"small": (0.8, 1.0), "moco": (0.6, 1.0), "short": (1.0, 1.0)}  # shares of the size at test
PRECISE = {"moco": 200}
BUDGET = 4_000_000_000  # detections × thresholds × resamples
NAMED = 20  # classes that a warning names


@dataclass(frozen=True)
class Detect(ProbeKind):
    """A detector on the encoder, all layers trained or only the new ones."""

    name = "detect"
    summary = (
        "boxes of objects by Faster R-CNN on the encoder, AP of VOC 2007 and of COCO (--preset moco, short)"
    )
    estimator = Detector

    preset: Annotated[
        str | None,
        "moco (C4, 24k steps, 480–800 pixels), short (10 epochs, lr 0.001), or small, for a CPU [small]",
    ] = None
    body: Annotated[str | None, "c4 (ResNets) or fpn (anything with maps, transformers) [the preset's]"] = (
        None
    )
    frozen: Annotated[bool, "train only what is new, the encoder stays unchanged"] = False
    norm: Annotated[str | None, "batch norms of the encoder: train or frozen [train]"] = None
    scales: Annotated[
        str | None, "short sides in training, LOW:HIGH pixels; --size is that at test [the preset's]"
    ] = None
    epochs: Annotated[int | None, "passes over the images, the schedule scaled to them [the preset's]"] = None
    steps: Annotated[int | None, "length of training in optimiser steps"] = None
    batch_size: Annotated[int | None, "images per step [the preset's]"] = None
    lr: Annotated[float | None, "learning rate [the preset's, which follows the batch size]"] = None

    def run(self, task: Task) -> list[Score]:
        fitted = with_boxes(task.train)
        tests = [(name, with_boxes([name])) for name in task.test]
        if not tests:
            rest, held = task.halves(np.zeros(len(fitted), np.int64))
            tests, fitted = [(HELD_OUT, fitted.select(held))], fitted.select(rest)
        names = classes_in(fitted)
        detector = self._detector(task, names)
        empty = sum(not len(fitted.facts(i).boxes or ()) for i in range(len(fitted)))
        if empty:
            print(
                f"{empty} of {len(fitted)} training images have no box: they are background", file=sys.stderr
            )
        detector.fit(fitted)
        scores = [s for name, data in tests for s in judge(task, detector, name, data, len(fitted))]
        task.note_skipped([d for _, d in tests] + [fitted], detector.skipped)
        return scores

    def _detector(self, task: Task, names: tuple[str, ...]) -> Detector:
        preset = self.preset or "small"
        given = {"epochs": self.epochs, "steps": self.steps, "batch_size": self.batch_size, "lr": self.lr}
        schedule = changed(SCHEDULES, preset, **given)
        if self.frozen and self.norm == "train":
            raise UserError(
                "--norm train trains a part of the encoder, which --frozen forbids: leave out one of them"
            )
        size = task.size or SIZES.get(preset) or task.encoder.card.size
        low, high = SCALES[preset]
        usual = f"{round(low * size)}:{round(high * size)}"
        return Detector(
            task.encoder,
            names,
            size,
            schedule,
            HEADS[preset],
            best_body(task.encoder, self.body, BODIES[preset]),
            self.frozen,
            self.norm or "train",
            span(self.scales or usual),
            PRECISE.get(preset, 0),
            task.seed,
            task.checkpoint,
        )


def with_boxes(specs: list[str]) -> Dataset:
    """A set with annotated objects, or an error that says how to give them."""
    data = open_data(specs)
    if not data.object_classes:
        raise UserError(
            f"{' '.join(specs)} has no boxes: detect needs DATA with annotated objects, in VOC's layout, COCO, YOLO or a "
            f"table (docs/data.md), or shapes:scenes"
        )
    return data


def classes_in(data: Dataset) -> tuple[str, ...]:
    """The classes that have a box in the training set."""
    there = np.zeros(len(data.object_classes), bool)
    for i in range(len(data)):
        boxes = data.facts(i).boxes
        if boxes is not None:
            there[boxes.classes[boxes.classes >= 0]] = True
    if not there.any():
        raise UserError("no image of --train has a box: there is nothing to learn")
    return tuple(name for name, has in zip(data.object_classes, there) if has)


def judge(task: Task, detector: Detector, name: str, data: Dataset, fitted: int) -> list[Score]:
    """Both averages on one test set, the table of classes, and the worst and best images."""
    rows, predicted, true = detector.predict(data, f"detecting on {name}")
    if not any(len(b) for b in true):
        raise UserError(
            f"--test {name}: none of its boxes is of a trained class ({', '.join(detector.names)})"
        )
    rankings = [rank(predicted, true, k) for k in range(len(detector.names))]
    judged = [k for k, r in enumerate(rankings) if r.positive.sum()]
    protocol = (
        f"{detector.protocol}/{fitted}images_{len(detector.names)}classes/mean_over_{len(judged)}of{len(rankings)}classes"
        "_bootstrap_over_images"
    )
    found = sum(len(d.scores) for d in predicted)
    count = int(max(50, min(RESAMPLES, BUDGET // max(1, found * len(THRESHOLDS)))))
    weights = resamples(len(true), task.seed, count)
    counted = [rankings[k] for k in judged]
    values = {"voc07": mean_ap(counted)}
    draws = {"voc07": np.stack([mean_ap(counted, w) for w in weights])}
    columns = {"voc07 AP50": [r.average_precision()[0] for r in rankings],
               "voc07 AP": [r.average_precision().mean() for r in rankings]}  # fmt: skip
    try:
        coco = CocoEvaluation(predicted, true, len(detector.names))
        values["coco"], draws["coco"] = coco.mean_ap(), np.stack([coco.mean_ap(w) for w in weights])
        columns |= {"coco AP50": list(coco.per_class()[:, 0]), "coco AP": list(coco.per_class().mean(1))}
    except ImportError:
        print(NEEDS, file=sys.stderr, flush=True)
    scores = []
    for form, value in values.items():
        for what, at in (("ap", slice(None)), ("ap50", slice(0, 1)), ("ap75", slice(5, 6))):
            drawn_values = draws[form][:, at].mean(1)
            how = f"{protocol}/{FORMS[form]}"
            score = with_interval(
                f"{form}_{what}/{name}", float(value[at].mean()), drawn_values, len(true), how
            )
            scores.append(score)
            task.draws[score.name] = drawn_values
    _note(task, name, detector, data, rows, rankings, columns)
    if task.out is not None:
        task.shots += drawn(detector, data, rows, predicted, true, name)
    return scores


FORMS = {"voc07": "11_point_AP_of_VOC_2007", "coco": "101_point_AP_of_COCO_by_pycocotools"}


def _note(
    task: Task,
    name: str,
    detector: Detector,
    data: Dataset,
    rows: Sequence[int],
    rankings: list[Ranking],
    columns: dict[str, list[float]],
) -> None:
    """The table of classes, and which classes do not count."""
    objects = [int(r.positive.sum()) for r in rankings]
    absent = [c for c, count in zip(detector.names, objects) if not count]
    boxes = [found for i in rows if (found := data.facts(i).boxes) is not None]
    there = {int(k) for found in boxes for k in found.classes}
    untrained = [c for k, c in enumerate(data.object_classes) if k in there and c not in detector.names]
    left_out = absent + untrained
    if left_out:
        advice = "; give a --test with boxes of the others" if absent else ""
        more = f", and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
        task.warn(
            f"{name}: {len(objects) - len(absent)} of {len(objects)} classes count (of those trained on){advice}; "
            f"classes that are not in both sets and do not count: {', '.join(left_out[:NAMED])}{more}"
        )
    entry = {"name": name, "images": len(rows), "boxes": sum(objects), "left_out_classes": left_out}
    task.tests.append({**entry, "classes": [c for c, count in zip(detector.names, objects) if count]})
    body = [
        [c, count, *(float(v[k]) if count else None for v in columns.values())]
        for k, (c, count) in enumerate(zip(detector.names, objects))
    ]
    title = f"Average precision per class, {name}"
    task.tables[f"ap/{name}"] = {"title": title, "columns": ["class", "objects", *columns], "rows": body}


def drawn(
    detector: Detector,
    data: Dataset,
    rows: list[int],
    predicted: list[Detections],
    true: list[Boxes],
    name: str,
) -> list[Shot]:
    """The images with the lowest and the highest F1: true boxes, and found ones with a score of 0.5 or more."""
    values = image_scores(predicted, true)
    shots = []
    for word, i in worst_and_best(values):
        kept = predicted[i].scores >= 0.5
        found = (predicted[i].corners[kept], predicted[i].classes[kept], predicted[i].scores[kept])
        panels = box_panels(data.image(rows[i]), (true[i].corners, true[i].classes), found, detector.names)
        caption = f"{Path(data.name(rows[i])).name}: F1 {values[i]:.2f}, {len(true[i])} objects, {int(kept.sum())} found"
        shots.append(Shot(f"{word} of {name}", caption, panels))
    return shots
