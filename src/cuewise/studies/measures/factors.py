"""What is left of the factors that views change: probes on rotation and colour, on LooC's heads, and the heads' shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.measured import Measured
from cuewise.cues.color import hue_shift
from cuewise.data import Dataset
from cuewise.encoders.embed import CenterView
from cuewise.probes import LinearProbe
from cuewise.probes.heads import blocks_of, columns_of, contributions_on, entropy_bits
from cuewise.probes.probe import held_out
from cuewise.probes.rotation import ANGLES, VIEW, Turned, in_all_angles
from cuewise.studies.looc_heads import SUBSETS, quantity
from cuewise.studies.measures.arm import TrainedArm, probed
from cuewise.studies.measures.measure import Quantities, measure

TRAIN, TEST = 1500, 800  # images, each in four versions, where a task has to be made of photographs
SPLITS = {"colour": "coloured", "rotation": "rotated"}  # of the embedded set
SUPERCLASS = 4  # shapes in a row that make a superclass of the embedded set
Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class FactorTask:
    """Features and labels to fit on and to test on; rows of one group are versions of one image."""

    X: NDArray[np.float32]
    y: Labels
    X_test: NDArray[np.float32]
    y_test: Labels
    groups: Labels | None = None

    def accuracy(self, name: str, columns: Labels | slice = slice(None)) -> Quantities:
        """Of a probe that sees these columns of the features."""
        probe = LinearProbe().fit(self.X[:, columns], self.y, self.groups)
        return probed(name, probe, self.X_test[:, columns], self.y_test)


def task_of(arm: TrainedArm, name: str, model: Measured) -> FactorTask:
    """`class`, `colour` or `rotation`: the lab's own sets, or four versions of each photograph."""
    if name == "class" and "clean" in arm.lab.sets:
        return as_labelled(model, arm.data("probe"), arm.data("clean"))
    if name in SPLITS and SPLITS[name] in arm.lab.sets:
        return as_labelled(model, arm.data(f"{SPLITS[name]}_train"), arm.data(SPLITS[name]))
    train, test = photographs(arm)
    if name == "class":
        return as_labelled(model, train, test)
    versions = turned if name == "rotation" else hues
    X, y, groups = in_all_angles(versions(model, train))
    X_test, y_test, _ = in_all_angles(versions(model, test))
    return FactorTask(X, y, X_test, y_test, groups)


def as_labelled(model: Measured, train: Dataset, test: Dataset) -> FactorTask:
    a, b = model.features(train), model.features(test)
    return FactorTask(a.features, a.labels, b.features, b.labels)


def photographs(arm: TrainedArm) -> tuple[Dataset, Dataset]:
    """Photographs to fit on and others to test on; an image is on one side with all its versions."""
    data = arm.data("probe")
    assert data.labels is not None
    rest, held = held_out(data.labels, np.random.default_rng([0, 1]))
    test = arm.data("clean") if "clean" in arm.lab.sets else data.select(held)
    return part_of(data.select(rest), TRAIN), part_of(test, TEST)


def part_of(data: Dataset, count: int) -> Dataset:
    """A fixed random part."""
    return data.select(np.random.default_rng(1).permutation(len(data))[:count])


def turned(model: Measured, data: Dataset) -> NDArray[np.float32]:
    """N×4D: features at the four angles of the rotation probe."""
    return model.in_view(data, VIEW, forward=Turned(model.encoder)).features


def hues(model: Measured, data: Dataset) -> NDArray[np.float32]:
    """N×4D: features at four turns of the hue circle."""
    found = []
    for k in range(len(ANGLES)):
        view = CenterView(model.encoder.card.size, change=partial(shift_hue, quarters=k))
        found.append(model.in_view(data, f"center, hue turned by {k} quarters", transform=view).features)
    return np.concatenate(found, axis=1)


def shift_hue(image: Pixels, quarters: int) -> Pixels:
    """The hue circle turned by quarters."""
    return np.asarray(hue_shift(image, turn=quarters / len(ANGLES)), np.uint8)


@measure("rotation", "a probe on the angle, 0, 90, 180 or 270 degrees", "probe", "clean?", "rotated_train?", "rotated?",
         version=3)  # fmt: skip
def rotation(arm: TrainedArm) -> Quantities:
    return task_of(arm, "rotation", arm.model).accuracy("rotation")


@measure("colour", "a probe on the object's hue, or on the turn of the hue circle in photographs", "probe", "clean?",
         "coloured_train?", "coloured?", version=3)  # fmt: skip
def colour(arm: TrainedArm) -> Quantities:
    return task_of(arm, "colour", arm.model).accuracy("colour")


@measure("heads", "a probe on each subset of LooC's heads, for each task", "probe", "clean?", "coloured_train?", "coloured?",
         "rotated_train?", "rotated?", version=3)  # fmt: skip
def heads(arm: TrainedArm) -> Quantities:
    blocks = blocks_of(arm.spaces.encoder)
    out: Quantities = {}
    for name in ("class", "colour", "rotation"):
        task = task_of(arm, name, arm.spaces)
        for subset in SUBSETS:
            heads = list(blocks) if subset == "all" else subset.split("+")
            out |= task.accuracy(quantity(name, subset), columns_of(blocks, heads))
    return out


@measure("contributions", "entropy in bits of the heads' shares, for several cues and for texture", "coloured_train",
         "coloured")  # fmt: skip
def contributions(arm: TrainedArm) -> Quantities:
    """Hue with superclass (several cues) and texture, on the same images."""
    blocks = blocks_of(arm.spaces.encoder)
    train, test = (arm.spaces.features(arm.data(role)) for role in ("coloured_train", "coloured"))
    out: Quantities = {}
    for name in ("several", "texture"):
        fitted, asked = (
            labels_of(arm.data(role), name)[found.index]
            for role, found in (("coloured_train", train), ("coloured", test))
        )
        probe = LinearProbe().fit(train.features, fitted)
        shares = contributions_on(probe, test, np.arange(len(asked)), asked, blocks).mean(0)
        out[f"entropy/{name}"] = entropy_bits(shares)
        out |= {f"share/{name}/{head}": float(s) for head, s in zip(blocks, shares)}
    return out


def labels_of(data: Dataset, name: str) -> Labels:
    """The texture, or hue and superclass together."""
    columns = {k: np.asarray(v) for k, v in data.columns.items()}
    return (
        columns["texture"]
        if name == "texture"
        else columns["colour"] * SUPERCLASS + columns["shape"] // SUPERCLASS
    )
