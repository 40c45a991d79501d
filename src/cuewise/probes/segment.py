"""`cuewise probe segment`: the class of each pixel, by a linear layer on frozen features or by an FCN; mIoU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cuewise.data import BrokenImage, Dataset, open_data
from cuewise.data.annotations.annotated import VOID
from cuewise.data.masks import Masked
from cuewise.errors import UserError
from cuewise.probes.dense.drawing import Shot, mask_panels, report_left_out, worst_and_best
from cuewise.probes.dense.iou import PixelCounts, count_pixels
from cuewise.probes.dense.resample import scored
from cuewise.probes.dense.schedule import DenseSchedule, changed
from cuewise.probes.dense.segmenters import FCNSegmenter, PixelProbe, Segmenter
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.task import HELD_OUT, Task
from cuewise.scores import Score

VOC_CLASSES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog", "horse",
    "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
# DenseCL's FCN-R50-d8 on VOC12aug at 512 pixels; Mishra et al. give 30 epochs and lr 0.01
SCHEDULES = {
    "densecl": DenseSchedule(0.01, 16, None, 20_000, weight_decay=5e-4, poly=0.9, floor=1e-4),
    "fcn": DenseSchedule(0.01, 16, 30),
}
AUXILIARY, SIZES = {"densecl": 0.4}, {"densecl": 512}


@dataclass(frozen=True)
class Classes:
    """The values of masks that are classes, in order; `table` maps a value to its class, VOID where it is none."""

    values: tuple[int, ...]
    names: tuple[str, ...]
    void: tuple[int, ...]

    @property
    def table(self) -> NDArray[np.uint8]:
        table = np.full(256, VOID, np.uint8)
        table[list(self.values)] = np.arange(len(self.values))
        return table


@dataclass(frozen=True)
class Segment(ProbeKind):
    """A linear layer per pixel on frozen features, or an FCN with all layers trained."""

    name = "segment"
    summary = "the class of each pixel, mIoU (a linear layer on frozen features, or --preset fcn, densecl)"
    estimator = Segmenter

    preset: Annotated[
        str | None,
        "fcn (30 epochs, lr 0.01) or densecl (20k steps, auxiliary head) [linear on frozen features]",
    ] = None
    masks: Annotated[
        Sequence[str] | None,
        "index images named as the images: one DATA for --train and one for each --test [the sets' own]",
    ] = None
    void: Annotated[Sequence[int], "values of a mask that do not count; 3 for trimaps [255]"] = (255,)
    epochs: Annotated[int | None, "passes over the images, the schedule scaled to them [the preset's]"] = None
    steps: Annotated[int | None, "length of training in optimiser steps"] = None
    batch_size: Annotated[int | None, "images per step [the preset's]"] = None
    lr: Annotated[float | None, "learning rate [the preset's, which follows the batch size]"] = None

    def run(self, task: Task) -> list[Score]:
        sets = masked_sets(task, self.masks or [])
        fitted, tests = sets[0], list(zip(task.test, sets[1:]))
        if not tests:
            rest, held = task.halves(np.zeros(len(fitted), np.int64))
            tests, fitted = [(HELD_OUT, fitted.select(held))], fitted.select(rest)
        classes = classes_of(fitted, self.void)
        segmenter = self._segmenter(task, len(classes.values)).fit(fitted, classes.table)
        scores: list[Score] = []
        for name, data in tests:
            scores += judge(task, segmenter, name, data, classes, len(fitted))
        task.note_skipped([d for _, d in tests] + [fitted], segmenter.skipped)
        return scores

    def _segmenter(self, task: Task, classes: int) -> Segmenter:
        side = task.size or SIZES.get(self.preset or "") or task.encoder.card.size
        given = {"epochs": self.epochs, "steps": self.steps, "batch_size": self.batch_size, "lr": self.lr}
        if self.preset is None:
            asked = [k for k, v in given.items() if v is not None]
            if asked:
                flag = asked[0].replace("_", "-")
                raise UserError(
                    f"--{flag} belongs to an FCN: add --preset fcn; the linear layer is solved exactly"
                )
            return PixelProbe(task.encoder, side, classes, task.seed)
        chosen = changed(SCHEDULES, self.preset, **given)
        aux = AUXILIARY.get(self.preset, 0.0)
        return FCNSegmenter(
            task.encoder, side, classes, task.seed, {}, chosen, aux, self.preset, task.checkpoint
        )


def masked_sets(task: Task, masks: Sequence[str]) -> list[Dataset]:
    """The training set and each test set, with masks."""
    count = 1 + len(task.test)
    if masks and len(masks) != count:
        raise UserError(
            f"{len(masks)} sets of --masks for {count} sets of images: give one for --train and one for each --test"
        )
    specs = [task.train, *([t] for t in task.test)]
    given: list[Dataset | None] = [open_data(m) for m in masks] or [None] * count
    sets = [Dataset([Masked(open_data(s), m, " ".join(s))]) for s, m in zip(specs, given)]
    for name, data in zip(task.test, sets[1:]):
        drawn = not (_index_images(sets[0]) or _index_images(data))
        if drawn and data.object_classes != sets[0].object_classes:
            raise UserError(
                f"--test {name} numbers other classes than --train in its masks: give sets with the same list of classes"
            )
    return sets


def classes_of(data: Dataset, void: Sequence[int]) -> Classes:
    """The values that occur in the masks of a set, those that do not count left out."""
    if any(not 0 <= v <= 255 for v in void):
        raise UserError(f"--void {' '.join(map(str, void))}: values of a mask are 0 to 255")
    seen = values_in(data)
    values = [v for v in seen if v not in void and v != VOID]
    if len(values) < 2:
        found = ", ".join(map(str, seen)) or "none"
        raise UserError(
            f"the masks of --train hold the values {found}, which leaves fewer than two classes: check --masks and --void"
        )
    return Classes(tuple(values), tuple(_name(data, v) for v in values), (*void, VOID))


def values_in(data: Dataset) -> list[int]:
    """The values that occur in the masks of a set; a mask that cannot be read is counted where its image is."""
    seen = np.zeros(256, bool)
    for i in range(len(data)):
        try:
            mask = data.facts(i).mask
        except BrokenImage:
            continue
        if mask is not None:
            seen |= np.bincount(mask.reshape(-1), minlength=256) > 0
    return [int(v) for v in np.flatnonzero(seen)]


def _name(data: Dataset, value: int) -> str:
    names = data.object_classes
    drawn = bool(names) and (len(names) == len(VOC_CLASSES) or not _index_images(data))
    if drawn and value == 0:
        return "background"
    return names[value - 1] if drawn and value <= len(names) else f"value {value}"


def _index_images(data: Dataset) -> bool:
    """Whether masks are stored pictures, whose values need not be positions in the list of classes."""
    source = data.sources[0]
    whole = source.whole if isinstance(source, Masked) else data
    return (isinstance(source, Masked) and source.masks is not None) or any(
        getattr(s, "masks", None) is not None for s in whole.sources
    )


def judge(
    task: Task, segmenter: Segmenter, name: str, data: Dataset, classes: Classes, fitted: int
) -> list[Score]:
    """mIoU and pixel accuracy on one test set, its table of classes, and its worst and best images."""
    found, rows = [], []
    for one in segmenter.predict(data, classes.table, f"segmenting {name}"):
        rows.append(one.row)
        found.append(count_pixels(one.mask, one.target, len(classes.values)))
    if not found:
        raise UserError(f"--test {name}: no image with its mask can be read")
    counts = PixelCounts(*(np.stack(part).astype(np.int64) for part in zip(*found)))
    judged, each = counts.judged, counts.per_class()
    if not judged.any():
        raise UserError(
            f"--test {name}: no pixel of its masks is of a trained class; check --masks and --void"
        )
    view = f"whole{segmenter.size}/{fitted}images_{len(classes.values)}classes"
    protocol = f"{segmenter.protocol}/{view}/mean_over_{int(judged.sum())}of{len(judged)}classes_bootstrap_over_images"
    scores = []
    for what, measure in (("miou", counts.mean), ("pixel_accuracy", counts.accuracy)):
        score, draws = scored(f"{what}/{name}", len(rows), protocol, measure, task.seed)
        scores.append(score)
        task.draws[score.name] = draws
    left_out = [n for n, there in zip(classes.names, judged) if not there]
    left_out += [f"value {v}" for v in values_in(data) if v not in (*classes.values, *classes.void)]
    present = [n for n, there in zip(classes.names, judged) if there]
    task.tests.append({"name": name, "images": len(rows), "classes": present, "left_out_classes": left_out})
    report_left_out(name, left_out)
    columns = zip(classes.names, each, judged, counts.true.sum(0))
    body = [[n, float(v) if there else None, int(t)] for n, v, there, t in columns]
    title = f"IoU per class, {name}"
    task.tables[f"iou/{name}"] = {"title": title, "columns": ["class", "IoU", "true pixels"], "rows": body}
    if task.out is not None:
        task.shots += drawn(segmenter, data, rows, counts, classes, name)
    return scores


def drawn(
    segmenter: Segmenter, data: Dataset, rows: list[int], counts: PixelCounts, classes: Classes, name: str
) -> list[Shot]:
    """The images with the lowest and the highest mIoU of their own: image, truth, prediction."""
    values = counts.of_images()
    chosen = worst_and_best(values)
    order = sorted({rows[i] for _, i in chosen})
    if not order:
        return []
    part = data.select(order)
    predicted = {order[p.row]: p for p in segmenter.predict(part, classes.table, "pictures")}
    shots = []
    for word, i in chosen:
        one = predicted[rows[i]]
        panels = mask_panels(data.image(rows[i]), one.target, one.mask, classes.values[0] == 0)
        caption = f"{Path(data.name(rows[i])).name}: mIoU {values[i]:.2f}"
        shots.append(Shot(f"{word} of {name}", caption, panels))
    return shots
