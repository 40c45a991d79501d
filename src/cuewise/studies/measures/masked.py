"""Masked methods: neighbours, fine-tuning, how well hidden patches are predicted, and what a step costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from cuewise.audits.answerer import named
from cuewise.audits.measures import answered
from cuewise.cues.color import grey
from cuewise.data import Batch
from cuewise.encoders.embed import evaluation_view
from cuewise.objectives.masked import patchify, reconstruction
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.knn import KNNProbe
from cuewise.probes.probe import held_out
from cuewise.probes.tunings import TUNINGS
from cuewise.scores import proportion
from cuewise.studies.measures.arm import TrainedArm, probed
from cuewise.studies.measures.measure import Quantities, measure
from cuewise.train.cost import flops, made_up
from cuewise.train.reload import load_method

# images of fine-tuning, and 100 steps; the preset's own rate is made for 50 epochs of many more images
TUNED, TUNING = 640, replace(TUNINGS["vit"], lr=(3e-3,), batch_size=64, epochs=10)
SHOWN = 256  # images that are reconstructed


@measure("knn", "k-NN accuracy on images like those that were trained on", "probe", "clean?", version=2)
def knn(arm: TrainedArm) -> Quantities:
    fitted = arm.model.features(arm.data("probe"))
    if "clean" in arm.lab.sets:
        tested = arm.model.features(arm.data("clean"))
        probe = KNNProbe().fit(fitted.features, fitted.labels)
        return probed("knn", probe, tested.features, tested.labels)
    rows, held = held_out(fitted.labels, np.random.default_rng([0, 1]))
    probe = KNNProbe().fit(fitted.features[rows], fitted.labels[rows])
    return probed("knn", probe, fitted.features[held], fitted.labels[held])


@measure(
    "finetuned",
    "accuracy after fine-tuning with layer decay on a part of the images",
    "probe",
    "clean?",
    version=2,
)
def finetuned(arm: TrainedArm) -> Quantities:
    whole = arm.data("probe")
    order = np.random.default_rng(0).permutation(len(whole))
    data = whole.select(order[:TUNED])
    test = arm.data("clean") if "clean" in arm.lab.sets else whole.select(order[TUNED : 2 * TUNED])
    assert data.labels is not None
    assert test.labels is not None
    probe = FinetuneProbe(arm.model.encoder, TUNING, workers=0).fit(data, data.labels)
    found = probe.answers(test)
    labels, answers = test.labels[found.index], named(found.features)
    rows = answered(labels, answers)
    hits = int((answers == labels)[rows].sum())
    return {"finetuned": proportion("finetuned", hits, int(rows.sum()), "").value}


@measure("cost", "FLOPs of a forward pass of all views with all heads, per image", "probe")
def cost(arm: TrainedArm) -> Quantities:
    method = load_method(arm.folder)
    batch = made_up(method, 2, torch.device("cpu"))
    with torch.no_grad():
        return {"gflops": flops(lambda: method(batch)) / 2e9}


@measure(
    "reconstruction",
    "error on hidden patches, over that of predicting each image's mean",
    "probe",
    "clean?",
    version=2,
)
def hidden_patches(arm: TrainedArm) -> Quantities:
    """Of arms that reconstruct; others have no such quantity. Without colours where training showed none."""
    method = load_method(arm.folder)
    data = arm.data("clean" if "clean" in arm.lab.sets else "probe")
    size, chosen = method.encoder.card.size, np.random.default_rng(0).permutation(len(data))[:SHOWN]
    views = [evaluation_view(data.image(int(i)), size) for i in chosen]
    if arm.lab.base.get("views", {}).get("gray_p") == 1:
        views = [grey(view) for view in views]
    x = method.encoder.normalise(torch.from_numpy(np.stack(views)))
    with torch.no_grad():
        step = method(
            Batch({view.role: x for view in type(method).shown(method.setup)}, torch.arange(len(x)))
        )
    if "reconstruction" not in step.extra:
        return {}
    clean = patchify(x, method.encoder.patch)
    mean = clean.mean(1, keepdim=True).expand_as(clean)
    error = float(step.extra["reconstruction"])
    by_mean = float(reconstruction(mean, clean, torch.ones(clean.shape[:2], dtype=torch.bool)))
    return {"reconstruction": error, "reconstruction/ratio": error / by_mean}
