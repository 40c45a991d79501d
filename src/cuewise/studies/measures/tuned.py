"""A model that already existed, tuned: what its own classifier answers, and what a probe knows in other domains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from torch import nn

from cuewise.audits.answerer import Answerer, Unasked
from cuewise.audits.change import change
from cuewise.audits.decisions import Decision, shape_bias_scores
from cuewise.audits.engine import Engine
from cuewise.audits.head import Head, map_for
from cuewise.audits.measured import Measured
from cuewise.audits.measures import accuracy, class_accuracies, decide, right_on_copies
from cuewise.data import Dataset
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import load_whole, outputs_of
from cuewise.scores import proportion
from cuewise.studies.measures.arm import TrainedArm, mean_of, quantities
from cuewise.studies.measures.cues import CORRUPTIONS, SEVERITY
from cuewise.studies.measures.measure import Quantities, measure
from cuewise.train.checkup import part

T = TypeVar("T")
STIMULUS, PHOTOGRAPH = 160, 96  # side in pixels at which drawings and conflicts, and photographs, are shown
MOST, SEED = 400, 3  # images of a domain, or of photographs that are corrupted; how they are drawn


@lru_cache(maxsize=2)
def classifier(model: str) -> tuple[nn.Module, int]:
    """The classifier of the model as it was: every arm is asked by it, also one that trained without it."""
    encoder = load_whole(model)
    if encoder.head is None:
        raise Unasked(f"{model} has no classifier: the study `tune` asks the model's own")
    return encoder.head, outputs_of(encoder)


def shown_at(arm: TrainedArm, size: int) -> Measured:
    """The arm at an input size, with the classifier of its start."""
    encoder: Encoder = load_encoder(str(arm.folder), size=size)
    encoder.head = classifier(str(arm.lab.base["model"]))[0]
    return Measured(arm.folder.name, encoder, arm.folder, engine=Engine(workers=0))


def asked(arm: TrainedArm, data: Dataset) -> Answerer:
    """The own classifier, its outputs gathered into the classes of a set."""
    head, outputs = classifier(str(arm.lab.base["model"]))
    found = map_for(data.classes, outputs, None)
    if found is None:
        raise Unasked(f"which outputs of the classifier stand for {', '.join(data.classes[:4])} is not known")
    probe = Head(head, *found)
    return Answerer(probe, tuple(probe.classes), "own classifier")


@measure("own", "the own classifier: shape bias on conflicts, accuracy on drawings, silhouettes and photographs; each also on "
         "two halves, one to choose on and one to confirm on", "conflict", "clean", "sketch?", "silhouette?",
         version=2)  # fmt: skip
def own(arm: TrainedArm) -> Quantities:
    """Halves of conflicts: every second one. Halves of photographs: every second class, among all of the set's classes."""
    stimuli, photographs = shown_at(arm, STIMULUS), shown_at(arm, PHOTOGRAPH)
    data = arm.data("conflict")
    found = stimuli.features(data)
    answerer = asked(arm, data)
    decisions = decide(data, found.index, answerer.say(found.features), answerer.classes).decisions
    out = biases(decisions)
    for role in ("sketch", "silhouette"):
        if role in arm.lab.sets:
            out[f"own/{role}"] = accuracy(stimuli, asked(arm, arm.data(role)), arm.data(role)).value
    clean = arm.data("clean")
    answerer = among(asked(arm, clean), clean)
    classes = class_accuracies(photographs, answerer, clean)
    for half, names in {"": answerer.classes, **halves(answerer.classes)}.items():
        hits, images = np.sum([(0, 0), *(classes[n] for n in names if n in classes)], axis=0)
        out[f"own/accuracy{half}"] = proportion("", int(hits), int(images), "").value
    return out


def halves(items: Sequence[T]) -> dict[str, Sequence[T]]:
    """Every second one to choose on, the others to confirm on."""
    return {"/chosen": items[::2], "/confirmed": items[1::2]}


def biases(decisions: Sequence[Decision]) -> Quantities:
    """Shape bias over all conflicts and over each half; shares of shape and texture decisions."""
    conflicts = [d for d in decisions if d.shape != d.texture]
    out = {score.name: score.value for score in shape_bias_scores(conflicts, "")[0]}
    for name, half in halves(conflicts).items():
        out[f"shape_bias{name}"] = shape_bias_scores(half, "")[0][0].value
    return out


def among(answerer: Answerer, data: Dataset) -> Answerer:
    """The answerer with the classes of a set alone to choose from."""
    assert isinstance(answerer.probe, Head)
    names = {name: rows for name, rows in answerer.probe.classes.items() if name in data.classes}
    probe = Head(answerer.probe.head, names, f"{answerer.probe.source}, {len(names)} classes")
    return Answerer(probe, tuple(names), f"{answerer.key} among {len(names)}")


@measure("own_corrupted", "the own classifier on one corruption of each family at severity 3", "clean")
def own_corrupted(arm: TrainedArm) -> Quantities:
    """Radii are scaled to the image."""
    data = part(arm.data("clean"), MOST, SEED)
    changes = [change("corrupted", corruption=c, severity=SEVERITY) for c in CORRUPTIONS]
    hits = right_on_copies(shown_at(arm, PHOTOGRAPH), among(asked(arm, data), data), data, changes)
    each = {f"own/{name}": float(np.nanmean(hits[:, i])) for i, name in enumerate(CORRUPTIONS)}
    return {**each, "own/corrupted": float(np.nanmean(hits))}


@measure(
    "domains", "a probe on the first domain, tested on each of the others", "ood_train", "ood/", version=2
)
def domains(arm: TrainedArm) -> Quantities:
    """ood is the mean over the domains."""
    model, out = shown_at(arm, PHOTOGRAPH), Quantities()
    roles = [r for r in arm.lab.sets if r.startswith("ood/")]
    for role in roles:
        asked_of = part(arm.data(role), MOST, SEED)
        out |= quantities(role, accuracy(model, model.answerer(arm.data("ood_train")), asked_of))
    return out | mean_of("ood", out, roles)
