"""Scores of networks that were trained on labelled images: of one, or the mean over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cuewise.data import Dataset, open_data
from cuewise.data.overlap import check_overlap
from cuewise.errors import UserError
from cuewise.probes.corrupted_sets import is_corrupted
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.probe import Labels, top_hits
from cuewise.probes.task import HELD_OUT, Task, accuracies, judged_corrupted, labelled
from cuewise.scores import Score, mean, proportion


def tuned_scores(task: Task, probes: Sequence[FinetuneProbe], val: str | None = None) -> list[Score]:
    """Fit each probe (one per seed) and score it on each test set, or on a fifth that is held out.

    val: images that choose the rate, instead of a fifth of the training set. The first seed chooses it for all.
    """
    data, sets = task.fitted, task.test_sets
    assert data.labels is not None
    if not sets:
        rest, held = task.halves(data.labels)
        data, sets = data.select(rest), [(HELD_OUT, data.select(held))]
    judged = None if val is None else _judging(task, val)
    runs: list[list[Score]] = []
    for n, probe in enumerate(probes):
        task.tests.clear()
        if n:
            probe.tuning = replace(probe.tuning, lr=(probes[0].lr_,))
        probe.fit(data, data.labels, judged=judged)  # type: ignore[arg-type]
        runs.append([s for name, each in sets for s in _scores(task, probe, name, each, len(data))])
    if len(runs) == 1:
        return runs[0]
    task.draws.clear()  # they are of images, the mean is over seeds
    return [over_seeds(each) for each in zip(*runs)]


def _scores(task: Task, probe: FinetuneProbe, name: str, each: Dataset, images: int) -> list[Score]:
    protocol = task.protocol(probe, images, len(task.fitted.classes), "crops")
    if is_corrupted(each):
        return judged_corrupted(task, name, each, probe.answers, lambda p: p, protocol)
    found = task.note(probe.answers(each, f"answers on {name}"), each)
    got = task.judged(name, found, each.classes, task.fitted.classes)
    p = found.features[got.rows]

    def score(what: str, k: int) -> Score:
        return proportion(what, int(top_hits(p, got.labels, k, got.right).sum()), len(p), "")

    if task.paired:
        task.resample(f"top1/{name}", top_hits(p, got.labels, 1, got.right))
    return accuracies(score, name, len(task.fitted.classes), f"{protocol}{got}")


def over_seeds(scores: Sequence[Score]) -> Score:
    """The mean over runs, its interval by their spread; n counts the runs."""
    first = scores[0]
    return mean(first.name, [s.value for s in scores], f"{first.protocol}/mean_of_{len(scores)}seeds")


def _judging(task: Task, val: str) -> tuple[Dataset, Labels]:
    """The images of --val and their labels by the training set's numbering."""
    data, classes = labelled([val]), task.fitted.classes
    strange = sorted(set(data.classes) - set(classes))
    if strange:
        raise UserError(
            f"--val {val}: class {strange[0]!r} is none of the training set's ({', '.join(classes[:4])}, …)"
        )
    for spec in task.test:
        found = check_overlap(data, open_data(spec))
        if found.count:
            raise UserError(
                f"--val {val}: {found.count} of {found.images} images of --test {spec} are in it; choose the rate on others"
            )
    assert data.labels is not None
    at: Any = np.array([classes.index(name) for name in data.classes])
    return data, at[data.labels]
