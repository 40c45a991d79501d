"""Texture suppression: a supervised arm's own answers before and after fine-tuning, probes on filtered arms, pretext curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cuewise.audits.answerer import Answerer
from cuewise.audits.answers import answers_of
from cuewise.audits.change import change
from cuewise.audits.confidence import confidence_score
from cuewise.audits.engine import Engine
from cuewise.audits.head import Head
from cuewise.audits.measured import Measured
from cuewise.audits.measures import accuracy, right_on_copies
from cuewise.audits.saliency import saliency_maps, spread_area
from cuewise.data import Dataset
from cuewise.encoders import Encoder
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.tunings import TUNINGS
from cuewise.studies.labs import Lab
from cuewise.studies.measures.arm import TrainedArm, mean_of, own_classifier
from cuewise.studies.measures.measure import Quantities, measure
from cuewise.train.log import read_metrics
from cuewise.train.optim import scaled_lr
from cuewise.train.reload import load_config, load_method
from cuewise.views import RECIPES

TUNING = replace(TUNINGS["clean"], batch_size=32, epochs=None, iterations=40, drops=())
PART = 200  # images of which changed copies are made
SALIENT = 96  # images whose saliency is measured
LOWPASS = (0.5, 0.375, 0.25)
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")
WEATHER = ("snow", "frost", "fog", "brightness")
SEVERITY = 3
POINTS = 10  # of a curve over training
FREE = ("silhouette", "sketch")  # sets of the embedded images without texture


def tests_of(lab: Lab) -> dict[str, str]:
    """Name → role of the sets that a supervised arm is tested on."""
    if "wide/clean" in lab.sets:
        return {name: f"wide/{name}" for name in ("clean", *FREE, "disjoint")}
    others = {role.partition("/")[2]: role for role in lab.sets if role.startswith("ood/")}
    return {"clean": "clean", **others}


@measure("answers", "answers of a supervised arm's own classifier, before and after fine-tuning on clean images: accuracy "
         "on every test set, without high frequencies, under noise and weather; saliency and confidence",
         "clean", "wide/?", "ood/?", version=4)  # fmt: skip
def answers(arm: TrainedArm) -> Quantities:
    train, answerer = arm.own_data, arm.own_answerer()
    out = scored(arm, arm.model, answerer, "before")
    assert train.labels is not None
    assert isinstance(answerer.probe, Head)
    head = answerer.probe.head
    assert isinstance(head, nn.Linear)
    config = load_config(arm.folder)
    low, high = config.views.scale or RECIPES["supervised"].scale
    tuning = replace(TUNING, scale=(low, high))  # as in training: other crops would undo what was learned
    if config.settings.get("statistics") == "fixed":
        # such a network diverges at the preset's rate; published is a tenth of the rate of training
        tenth = scaled_lr(config.optim, config.batch_size) / 10
        tuning = replace(tuning, fixed_norm=True, lr=(tenth,))
    probe = FinetuneProbe(arm.model.encoder, tuning, seed=config.seed, workers=0, head=head)
    tuned = probe.fit(train, train.labels).network_
    encoder = tuned[0]
    assert isinstance(encoder, Encoder)
    model = Measured("tuned", encoder, engine=Engine(workers=0))
    return out | scored(arm, model, own_classifier(tuned[1], train.classes, "tuned"), "after")


def scored(arm: TrainedArm, model: Measured, answerer: Answerer, when: str) -> Quantities:
    """WHEN/NAME for every set and change; texture_free is the mean over sets without texture or over other domains."""
    sets = tests_of(arm.lab)
    out = {name: accuracy(model, answerer, arm.data(role)).value for name, role in sets.items()}
    free = [n for n in sets if n in FREE] or [n for n in sets if n != "clean"]
    out["texture_free"] = float(np.mean([out[n] for n in free]))
    whole = arm.data(sets["clean"])
    part = whole.select(np.random.default_rng(0).permutation(len(whole))[:PART])
    kinds = {
        "lowpass": [change("lowpass", keep=k) for k in LOWPASS],
        "noise": [change("corrupted", corruption=c, severity=SEVERITY) for c in NOISE],
        "weather": [change("corrupted", corruption=c, severity=SEVERITY) for c in WEATHER],
    }
    every = [c for changes in kinds.values() for c in changes]
    right = np.nanmean(right_on_copies(model, answerer, part, every), axis=0)
    for name, changes in kinds.items():
        out[name], right = float(np.mean(right[: len(changes)])), right[len(changes) :]
    out |= certainty(model, answerer, whole)
    return {f"{when}/{name}": value for name, value in out.items()}


def certainty(model: Measured, answerer: Answerer, data: Dataset) -> Quantities:
    """Confidence and area of saliency as the audits of these names define them; nothing where no answer is finite."""
    answers, out = answers_of(model, answerer, data, "clean"), Quantities()
    if answers.correct.any():
        out["confidence"] = confidence_score(answers).value
    if len(answers.index):
        shown = answers.part(np.random.default_rng(0).permutation(len(answers.index))[:SALIENT])
        out["saliency"] = float(spread_area(saliency_maps(model, answerer, shown)[1]).mean())
    return out


@measure("wide", "a linear probe on images of 64 pixels in their own colours, tested without texture and on new textures",
         "wide/probe", "wide/", version=2)  # fmt: skip
def wide(arm: TrainedArm) -> Quantities:
    out: Quantities = {}
    for role in (r for r in arm.lab.sets if r.startswith("wide/") and r != "wide/probe"):
        out |= arm.accuracy("wide/probe", role)
    return out | mean_of("wide/texture_free", out, [f"wide/{n}" for n in FREE])


@measure(
    "pretext", "loss and accuracy of the pretext task over training, early and at its end", "probe", version=1
)
def pretext(arm: TrainedArm) -> Quantities:
    """curve/loss/N at N tenths of training; early is the first tenth relative to the loss of knowing nothing."""
    rows = [r for r in read_metrics(arm.folder / "metrics.jsonl") if "train/loss" in r]
    out: Quantities = {}
    for key in ("loss", "accuracy"):
        values = [(r["step"], r[f"train/{key}"]) for r in rows if f"train/{key}" in r]
        if values:
            out |= curve(key, np.array(values, np.float64))
    chance = load_method(arm.folder).chance_loss
    if chance:
        out["pretext/early"] = out["curve/loss/1"] / chance
        out["pretext/end"] = out[f"curve/loss/{POINTS}"] / chance
    if f"curve/accuracy/{POINTS}" in out:
        out["pretext/accuracy"] = out[f"curve/accuracy/{POINTS}"]
    return out


def curve(key: str, values: NDArray[np.float64]) -> Mapping[str, float]:
    """Means over each tenth of training; a tenth without a row takes the row nearest to it."""
    steps, last = values[:, 0], values[-1, 0]
    out = {}
    for n in range(POINTS):
        low, high = last * n / POINTS, last * (n + 1) / POINTS
        inside = (steps > low) & (steps <= high)
        found = values[inside, 1] if inside.any() else values[[np.abs(steps - high).argmin()], 1]
        out[f"curve/{key}/{n + 1}"] = float(found.mean())
    return out
