"""Named quantities of a trained arm. A measure runs where the lab has every set that it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuewise.studies.labs import Lab, Sets
from cuewise.studies.similarities import pair_similarities
from cuewise.studies.trained import Trained

Quantities = dict[str, float]


@dataclass(frozen=True)
class Measure:
    """`needs`: roles of the lab's sets; a role that ends in / stands for all that begin so. `version` is part of the hash."""

    name: str
    needs: tuple[str, ...]
    version: int
    take: Callable[[Trained, Lab], Quantities]

    def sets(self, lab: Lab) -> Sets | None:
        """The sets it would use, or None where the lab lacks one."""
        found: dict[str, object] = {}
        for need in self.needs:
            matching = {
                r: s for r, s in lab.sets.items() if r == need or (need.endswith("/") and r.startswith(need))
            }
            if not matching:
                return None
            found |= matching
        return found  # type: ignore[return-value]

    def protocol(self, lab: Lab) -> str:
        """A hash of everything that the numbers depend on beside the arm."""
        content = {"name": self.name, "version": self.version, "sets": self.sets(lab)}
        if self.name == "similarity":
            content["pairs"] = {"patch": lab.patch, "views": lab.base.get("views"), "size": lab.base["size"]}
        text = json.dumps(content, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


MEASURES: dict[str, Measure] = {}


def measure(name: str, *needs: str, version: int = 1) -> Callable[..., Callable[[Trained, Lab], Quantities]]:
    """Decorator: list the function as measure `name`."""

    def add(take: Callable[[Trained, Lab], Quantities]) -> Callable[[Trained, Lab], Quantities]:
        MEASURES[name] = Measure(name, needs, version, take)
        return take

    return add


def applicable(names: tuple[str, ...], lab: Lab) -> list[Measure]:
    """Those of the named measures for which the lab has the data."""
    return [MEASURES[n] for n in names if MEASURES[n].sets(lab) is not None]


@measure("clean", "probe")
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
    """M30: a probe on breeds; fine = the breed is right, coarse = its superclass is."""
    said, labels, _ = t.tested("fine_train", "fine")
    group = {k: name.partition("-")[0] for k, name in enumerate(t.data("fine_train").classes)}
    coarse = np.array([group[int(a)] == group[int(b)] for a, b in zip(said, labels)])
    return {"fine": float((said == labels).mean()), "coarse": float(coarse.mean())}


@measure("texture_classes", "probe", "texture_only")
def texture_classes(t: Trained, lab: Lab) -> Quantities:
    """M31: accuracy on pure texture, class by class: the lowest, the median and the highest class."""
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


@measure("coloured", "coloured_train", "coloured")
def coloured(t: Trained, lab: Lab) -> Quantities:
    """A probe on hue."""
    return {"colour": t.accuracy("coloured_train", "coloured")}


@measure("rotated", "rotated_train", "rotated")
def rotated(t: Trained, lab: Lab) -> Quantities:
    """A probe on the angle, 0, 90, 180 or 270 degrees (M70 on the embedded set)."""
    return {"rotation": t.accuracy("rotated_train", "rotated")}


@measure("disjoint", "disjoint_train", "disjoint")
def disjoint(t: Trained, lab: Lab) -> Quantities:
    """A probe on shapes in textures that it never saw."""
    return {"disjoint": t.accuracy("disjoint_train", "disjoint")}
