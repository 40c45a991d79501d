"""The kinds of `cuewise probe`: what each is, the options it takes, and how it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch.nn.functional as F

from cuewise.data import open_data
from cuewise.encoders import Encoder
from cuewise.errors import UserError
from cuewise.probes.fewshot import FewShotProbe
from cuewise.probes.finetune import FinetuneProbe, tuning
from cuewise.probes.knn import KNNProbe
from cuewise.probes.linear import LinearProbe
from cuewise.probes.multilabel import MultiLabelProbe
from cuewise.probes.multilabel_task import TUNED, multilabel
from cuewise.probes.probe import Probe, top_hits
from cuewise.probes.rotation import VIEW, RotationProbe, Turned, in_all_angles
from cuewise.probes.sgd import SGDProbe, schedule
from cuewise.probes.task import HELD_OUT, Task, accuracies, classify, rows_of
from cuewise.scores import Score, proportion

CONV_NUMBERS = 9216  # of the map that frozen_conv is fitted on: AlexNet's conv5, 256 × 6 × 6


@dataclass(frozen=True)
class Kind:
    """A kind of probe; `estimator` is what learns in it."""

    name: str
    summary: str
    run: Callable[[Task], list[Score]]
    estimator: type[Probe]
    options: dict[str, Any] = field(default_factory=dict)  # name → default


def linear(task: Task) -> list[Score]:
    """The exact probe, or a paper's schedule on the same features."""
    preset = task.options["preset"]
    if preset is None:
        return classify(task, LinearProbe(seed=task.seed))
    how = {"view": "conv map", "forward": ConvMap(task.encoder)} if schedule(preset).conv else {}
    return classify(task, SGDProbe(preset, task.seed), **how)


class ConvMap:
    """The last feature map averaged onto a grid of at most 9216 numbers, flattened: B×(C·g·g)."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, x: Any) -> Any:
        m = self.encoder.feature_map(x)  # B×C×h×w
        side = max(1, min(m.shape[2], m.shape[3], int((CONV_NUMBERS / m.shape[1]) ** 0.5)))
        return F.adaptive_avg_pool2d(m, side).flatten(1)


def knn(task: Task) -> list[Score]:
    """Votes of neighbours."""
    return classify(task, KNNProbe(task.options["k"], task.options["temperature"]))


def fewshot(task: Task) -> list[Score]:
    """Each number of shots by itself."""
    scores = []
    labels = task.fitted.labels
    assert labels is not None
    for shots in task.options["shots"]:
        counts = np.bincount(labels, minlength=len(task.fitted.classes))
        least = int(np.where(counts > 0, counts, counts.max()).argmin())
        if counts[least] < shots:
            raise UserError(
                f"class {task.fitted.classes[least]!r} has {counts[least]} images, fewer than --shots {shots}"
            )
        task.tests.clear()
        found = classify(task, FewShotProbe(shots, task.options["trials"], seed=task.seed))
        scores += [dataclasses.replace(s, name=f"{shots}-shot/{s.name}") for s in found]
    return scores


def rotation(task: Task) -> list[Score]:
    """Every image in four rotations; sets need no labels."""
    how = {"view": VIEW, "forward": Turned(task.encoder)}
    probe = RotationProbe(seed=task.seed)
    found = task.features(open_data(task.train), "train in four rotations", **how)
    if task.test:
        rest = np.arange(len(found.index))
        sets = [(n, task.features(open_data(n), f"{n} in four rotations", **how)) for n in task.test]
    else:
        rest, held = task.halves(np.zeros(len(found.index), np.int64))
        sets = [(HELD_OUT, rows_of(found, held))]
    X, y, images = in_all_angles(found.features[rest])
    protocol = task.protocol(probe.fit(X, y, images), len(rest), 4)
    scores = []
    for name, each in sets:
        X, y, _ = in_all_angles(each.features)
        task.tests.append({"name": name, "images": len(each.index)})
        scores.append(dataclasses.replace(probe.score(X, y, f"top1/{name}"), protocol=protocol))
    return scores


def finetune(task: Task) -> list[Score]:
    """Train the whole network, then ask it."""
    o, data = task.options, task.fitted
    asked = {k: o[k] for k in ("epochs", "batch_size", "lr")}
    chosen = tuning(o["preset"] or "transfer", ("transfer", "clean"), **asked)
    probe = FinetuneProbe(task.encoder, chosen, task.seed, o["steps"])
    labels = data.labels
    assert labels is not None
    fitted, sets = data, task.test_sets
    if not sets:
        rest, held = task.halves(labels)
        fitted, sets = data.select(rest), [(HELD_OUT, data.select(held))]
    probe.fit(fitted, fitted.labels)  # type: ignore[arg-type]
    protocol = task.protocol(probe, len(fitted), len(np.unique(labels)), "crops")
    scores: list[Score] = []
    for name, each in sets:
        found = task.note(probe.answers(each, f"asking about {name}"), each)
        got = task.judged(name, found, each.classes, data.classes)
        p = found.features[got.rows]

        def score(what: str, k: int, p: Any = p, got: Any = got) -> Score:
            return proportion(what, int(top_hits(p, got.labels, k, got.right).sum()), len(p), "")

        scores += accuracies(score, name, len(data.classes), f"{protocol}{got}")
    return scores


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "linear",
            "logistic regression on frozen features, exact (or --preset ns, moco, looc, frozen_conv)",
            linear,
            LinearProbe,
            {"preset": None, "class_map": None},
        ),
        Kind(
            "knn",
            "weighted votes of the k nearest training images",
            knn,
            KNNProbe,
            {"k": 20, "temperature": 0.07, "class_map": None},
        ),
        Kind(
            "fewshot",
            "a linear layer from n images of every class, mean of 10 trials",
            fewshot,
            FewShotProbe,
            {"shots": [5], "trials": 10, "class_map": None},
        ),
        Kind("rotation", "which of four ways up is an image? labels not needed", rotation, RotationProbe),
        Kind(
            "finetune",
            "the whole network goes on training (--preset transfer or clean)",
            finetune,
            FinetuneProbe,
            {"preset": None, "class_map": None, **TUNED},
        ),
        Kind(
            "multilabel",
            "several labels an image, mean average precision (exact, or --preset oac, voc)",
            multilabel,
            MultiLabelProbe,
            {"preset": None, "labels": None, **TUNED},
        ),
    )
}
