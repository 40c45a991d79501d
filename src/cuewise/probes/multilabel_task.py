"""`cuewise probe multilabel`: labels from a table, a probe on frozen features or the whole network, mAP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cuewise.data import Dataset, open_data
from cuewise.encoders.embed import Embedded
from cuewise.errors import UserError
from cuewise.probes.average_precision import VARIANTS, mean_average_precision
from cuewise.probes.finetune import FinetuneProbe, tuning
from cuewise.probes.label_table import LabelTable, read_table, scene_table, targets
from cuewise.probes.multilabel import OAC, MultiLabelProbe, known_bce
from cuewise.probes.probe import Probe
from cuewise.probes.task import HELD_OUT, Task, rows_of
from cuewise.scores import Score

TUNED = {"epochs": None, "batch_size": None, "lr": None, "steps": None}


def multilabel(task: Task) -> list[Score]:
    """One sigmoid a label, judged by mAP in both variants."""
    o, preset = task.options, task.options["preset"]
    data = open_data(task.train)
    tables = _tables(task, data)
    classes = tables[0].classes
    if preset == "voc":
        asked = {k: o[k] for k in ("epochs", "batch_size", "lr")}
        probe: Probe = FinetuneProbe(
            task.encoder, tuning("voc", ("voc",), **asked), task.seed, o["steps"], loss=known_bce
        )
        return _tuned_multilabel(task, probe, data, tables, classes)
    if preset not in (None, "oac"):
        raise UserError(f"no preset {preset!r} of a multi-label probe; there are: oac, voc")
    if any(o[k] is not None for k in TUNED):
        raise UserError("--epochs, --batch-size, --lr and --steps belong to fine-tuning: add --preset voc")
    probe = MultiLabelProbe(seed=task.seed, schedule=OAC if preset else None)
    found = task.features(data, "train")
    wanted = targets(data, found.index, tables[0], classes, " ".join(task.train))
    if task.test:
        probe.fit(found.features, wanted)  # type: ignore[arg-type]
        fitted, sets = len(wanted), list[tuple[str, Embedded, Any]]()
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
    task: Task, probe: Any, data: Dataset, tables: list[LabelTable], classes: tuple[str, ...]
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
        found = task.note(probe.answers(each, f"asking about {name}"), each)
        y = targets(each, found.index, table, classes, name)
        scores += _maps(task, name, found.features, y, protocol)
    return scores


def _maps(task: Task, name: str, p: Any, y: Any, protocol: str) -> list[Score]:
    judged = int((y == 1).any(0).sum())
    counted = f"{protocol}/mean_over_{judged}of{y.shape[1]}labels_bootstrap_over_images"
    task.tests.append({"name": name, "images": len(y), "labels": judged})
    return [mean_average_precision(p, y, f"map_{v}/{name}", f"{counted}/{v}", v, task.seed) for v in VARIANTS]


def _tables(task: Task, train: Dataset) -> list[LabelTable]:
    """A table of labels for the training set and each test set: one file for all, or one each."""
    files, count = task.options["labels"] or [], 1 + len(task.test)
    if files:
        if len(files) not in (1, count):
            raise UserError(
                f"{len(files)} files of --labels for {count} sets: give one for all, or one for each"
            )
        read = [read_table(Path(f)) for f in files]
        return read if len(read) == count else read * count
    found = [scene_table(d) for d in (train, *(open_data(t) for t in task.test))]
    if any(t is None for t in found):
        raise UserError(
            "multilabel needs --labels FILE: a CSV with the columns image,labels (a;b;c), or JSON"
        )
    return [t for t in found if t is not None]
