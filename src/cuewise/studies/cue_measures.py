"""Which cues a trained arm relies on: accuracies, decisions and similarities."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from cuewise.cues.corruptions import variants
from cuewise.encoders.embed import evaluating
from cuewise.studies.labs import Lab
from cuewise.studies.measures import Quantities, measure
from cuewise.studies.similarities import pair_similarities
from cuewise.studies.trained import Trained, opened
from cuewise.views import center

CORRUPTIONS = ("gaussian_noise", "motion_blur", "fog", "jpeg_compression")  # one of each family
SEVERITY, CORRUPTED = 3, 400  # images


@measure("clean", "probe", "clean?")
def clean(t: Trained, lab: Lab) -> Quantities:
    """Linear accuracy on images like those that were trained on."""
    if "clean" in lab.sets:
        return {"clean": t.accuracy("probe", "clean")}
    return {"clean": t.held_out_accuracy("probe")}


@measure("conflict", "probe", "conflict")
def conflict(t: Trained, lab: Lab) -> Quantities:
    """Decisions of the probe where shape and texture disagree."""
    found, columns = t.features("conflict"), t.data("conflict").columns
    said = t.probe().predict(found.features)
    shape = int((said == np.asarray(columns["shape"])[found.index]).sum())
    texture = int((said == np.asarray(columns["texture"])[found.index]).sum())
    n = len(said)
    return {
        "shape_bias": shape / max(1, shape + texture),
        "shape_accuracy": shape / n,
        "texture_accuracy": texture / n,
    }


@measure("cues", "probe", "texture_only", "silhouette", "sketch")
def cues(t: Trained, lab: Lab) -> Quantities:
    """Accuracy from one cue alone; texture_free is the mean of silhouette and sketch."""
    out: Quantities = {}
    for role, column in (("texture_only", "texture"), ("silhouette", "shape"), ("sketch", "shape")):
        found = t.features(role)
        labels = np.asarray(t.data(role).columns[column])[found.index]
        out[f"cue/{role}"] = float((t.probe().predict(found.features) == labels).mean())
    return out | {"texture_free": (out["cue/silhouette"] + out["cue/sketch"]) / 2}


@measure("fine", "fine_train", "fine")
def fine(t: Trained, lab: Lab) -> Quantities:
    """A probe on breeds; fine = the breed is right, coarse = its superclass is."""
    said, labels, _ = t.tested("fine_train", "fine")
    group = {k: name.partition("-")[0] for k, name in enumerate(t.data("fine_train").classes)}
    coarse = np.array([group[int(a)] == group[int(b)] for a, b in zip(said, labels)])
    return {"fine": float((said == labels).mean()), "coarse": float(coarse.mean())}


@measure("texture_classes", "probe", "texture_only")
def texture_classes(t: Trained, lab: Lab) -> Quantities:
    """Accuracy on pure texture, class by class: the lowest, the median and the highest class."""
    found = t.features("texture_only")
    labels = np.asarray(t.data("texture_only").columns["texture"])[found.index]
    right = t.probe().predict(found.features) == labels
    by_class = np.array([right[labels == k].mean() for k in np.unique(labels)])
    chance = 1 / len(t.data("probe").classes)
    return {
        "texture_classes/median": float(np.median(by_class)),
        "texture_classes/highest": float(by_class.max()),
        "texture_classes/near_chance": float((by_class < 2 * chance).mean()),
    }


@measure("similarity", "probe", version=1)
def similarity(t: Trained, lab: Lab) -> Quantities:
    """Mean cosine and spread of the four pair types, in evaluation mode, on the same pairs for every arm."""
    out: Quantities = {}
    for pair, values in pair_similarities(t, lab).items():
        out[f"similarity/{pair}"] = float(values.mean())
        out[f"similarity/{pair}_std"] = float(values.std(ddof=1))
    return out


@measure("ood", "ood_train", "ood/")
def ood(t: Trained, lab: Lab) -> Quantities:
    """A probe on the first domain, tested on each of the others; texture_free is their mean."""
    out = {role: t.accuracy("ood_train", role) for role in lab.sets if role.startswith("ood/")}
    return out | {
        "ood_train": t.held_out_accuracy("ood_train"),
        "texture_free": float(np.mean(list(out.values()))),
    }


@measure("disjoint", "disjoint_train", "disjoint")
def disjoint(t: Trained, lab: Lab) -> Quantities:
    """A probe on shapes in textures that it never saw."""
    return {"disjoint": t.accuracy("disjoint_train", "disjoint")}


@measure("corrupted", "probe", "corrupted")
def corrupted(t: Trained, lab: Lab) -> Quantities:
    """The clean probe on one corruption of each family at severity 3, radii scaled to the image."""
    data = t.data("corrupted")
    number = {name: i for i, name in enumerate(t.data("probe").classes)}
    pixels, index = corrupted_views(tuple(lab.sets["corrupted"]), t.encoder.card.size)
    assert data.labels is not None
    labels = np.array([number.get(data.classes[k], -1) for k in data.labels[index]])
    right = []
    with evaluating(t.encoder):
        for images in pixels.values():
            x = torch.from_numpy(images)
            features = torch.cat([t.encoder(t.encoder.normalise(part)) for part in x.split(128)])
            right.append((t.probe().predict(features.numpy()) == labels)[labels >= 0].mean())
    return {"corrupted": float(np.mean(right))}


@lru_cache(maxsize=2)
def corrupted_views(
    specs: tuple[str, ...], size: int
) -> tuple[dict[str, NDArray[np.uint8]], NDArray[np.int64]]:
    """Views of a few hundred images under each corruption, and which images they are; made once for all arms."""
    data = opened(specs)
    index = np.random.default_rng(0).permutation(len(data))[:CORRUPTED]
    made: dict[str, list[NDArray[np.uint8]]] = {c: [] for c in CORRUPTIONS}
    for i in index.tolist():
        view = center(data.image(i), size)
        found = variants(
            view,
            seed=0,
            name=data.name(i),
            corruptions=CORRUPTIONS,
            severities=(SEVERITY,),
            scale_to_image=True,
        )
        for name, _, image in found:
            made[name].append(image)
    return {name: np.stack(rows) for name, rows in made.items()}, index
