"""`cuewise probe multilabel`: labels from annotations or a table, a probe on frozen features or the whole network, mAP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cuewise.data import Dataset, open_data
from cuewise.encoders.embed import Embeddings
from cuewise.errors import UserError
from cuewise.probes.average_precision import VARIANTS, mean_average_precision
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.label_table import Annotations, LabelTable, annotated_labels, read_table, targets
from cuewise.probes.multilabel import OAC, MultiLabelProbe, batch_bce
from cuewise.probes.task import HELD_OUT, Task, rows_of
from cuewise.probes.tunings import tuning
from cuewise.scores import Score


@dataclass(frozen=True)
class MultiLabel(ProbeKind):
    """One sigmoid per label, scored by mAP in both variants."""

    name = "multilabel"
    summary = "several labels per image, mean average precision (exact, or --preset oac, voc)"
    estimator = MultiLabelProbe

    preset: Annotated[str | None, "a paper's settings: oac, voc [the exact probe]"] = None
    labels: Annotated[
        Sequence[str] | None,
        "tables of labels, CSV or JSON: one for all sets, or one for --train and one for each --test",
    ] = None
    epochs: Annotated[int | None, "passes over the images [the preset's]"] = None
    batch_size: Annotated[int | None, "images per step [the preset's]"] = None
    lr: Annotated[
        float | None, "learning rate [the preset's, chosen on held-out images where there are several]"
    ] = None
    steps: Annotated[int | None, "stop after this many steps, the schedule unchanged"] = None

    def run(self, task: Task) -> list[Score]:
        data = open_data(task.train)
        tables = _tables(self.labels or [], task, data)
        classes = tables[0].classes
        if self.preset == "voc":
            chosen = tuning("voc", ("voc",), epochs=self.epochs, batch_size=self.batch_size, lr=self.lr)
            tuned = FinetuneProbe(task.encoder, chosen, task.seed, self.steps, loss=batch_bce)
            return _tuned_multilabel(task, tuned, data, tables, classes)
        if self.preset not in (None, "oac"):
            raise UserError(f"no preset {self.preset!r} of a multi-label probe; there are: oac, voc")
        if any(v is not None for v in (self.epochs, self.batch_size, self.lr, self.steps)):
            raise UserError(
                "--epochs, --batch-size, --lr and --steps belong to fine-tuning: add --preset voc"
            )
        probe = MultiLabelProbe(seed=task.seed, schedule=OAC if self.preset else None)
        found = task.features(data, "train")
        wanted = targets(data, found.index, tables[0], classes, " ".join(task.train))
        if task.test:
            probe.fit(found.features, wanted)
            fitted, sets = len(wanted), list[tuple[str, Embeddings, Any]]()
            for name, table in zip(task.test, tables[1:]):
                each = open_data(name)
                got = task.features(each, name)
                sets.append((name, got, targets(each, got.index, table, classes, name)))
        else:
            rest, held = task.halves(np.zeros(len(wanted), np.int64))
            probe.fit(found.features[rest], wanted[rest])
            fitted, sets = len(rest), [(HELD_OUT, rows_of(found, held), wanted[held])]
        protocol = task.protocol(probe, fitted, len(classes))
        answered = [(n, probe.predict_proba(each.features), y) for n, each, y in sets]
        return [s for n, p, y in answered for s in _maps(task, n, p, y, protocol)]


def _tuned_multilabel(
    task: Task, probe: Any, data: Dataset, tables: list[LabelTable | Annotations], classes: tuple[str, ...]
) -> list[Score]:
    wanted = targets(data, np.arange(len(data)), tables[0], classes, " ".join(task.train))
    sets = [(n, open_data(n), t) for n, t in zip(task.test, tables[1:])]
    rest = np.arange(len(data))
    if not sets:
        rest, held = task.halves(np.zeros(len(data), np.int64))
        sets = [(HELD_OUT, data.select(held), tables[0])]
    probe.fit(data.select(rest), wanted[rest])
    protocol, scores = task.protocol(probe, len(rest), len(classes), "crops"), []
    for name, each, table in sets:
        found = task.note(probe.answers(each, f"answers on {name}"), each)
        y = targets(each, found.index, table, classes, name)
        scores += _maps(task, name, found.features, y, protocol)
    return scores


def _maps(task: Task, name: str, p: Any, y: Any, protocol: str) -> list[Score]:
    judged = int((y == 1).any(0).sum())
    counted = f"{protocol}/mean_over_{judged}of{y.shape[1]}labels_bootstrap_over_images"
    task.tests.append({"name": name, "images": len(y), "labels": judged})
    return [mean_average_precision(p, y, f"map_{v}/{name}", f"{counted}/{v}", v, task.seed) for v in VARIANTS]


def _tables(files: Sequence[str], task: Task, train: Dataset) -> list[LabelTable | Annotations]:
    """A table of labels for the training set and each test set: one file for all, or one each."""
    count = 1 + len(task.test)
    if files:
        if len(files) not in (1, count):
            raise UserError(
                f"{len(files)} files of --labels for {count} sets: give one for all, or one for each"
            )
        read: list[LabelTable | Annotations] = [read_table(Path(f)) for f in files]
        return read if len(read) == count else read * count
    found = [annotated_labels(d) for d in (train, *(open_data(t) for t in task.test))]
    if any(t is None for t in found):
        raise UserError(
            "multilabel needs DATA with annotated objects (docs/data.md), or --labels FILE: a CSV with the columns "
            "image,labels (a;b;c), or JSON"
        )
    return [t for t in found if t is not None]
