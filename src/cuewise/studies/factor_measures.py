"""What is left of the factors that views change: probes on rotation and colour, on LooC's heads, and the heads' shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.color import hue_shift
from cuewise.data import Dataset
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.embed import CenterView, embed_dataset
from cuewise.probes import LinearProbe
from cuewise.studies.labs import Lab
from cuewise.studies.looc_heads import SUBSETS, quantity
from cuewise.studies.measures import Quantities, measure
from cuewise.studies.trained import HELD_OUT, Trained

TRAIN, TEST = 1500, 800  # images, each in four versions, where a task has to be made of photographs
SPLITS = {"colour": "coloured", "rotation": "rotated"}  # of the embedded set
SUPERCLASS = 4  # shapes in a row that make a superclass of the embedded set
Pixels = NDArray[np.uint8]
Change = Callable[[Pixels, int], Pixels]


@dataclass(frozen=True)
class Task:
    """Features and labels to fit on and to test on."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]

    def accuracy(self, columns: NDArray[np.int64] | slice = slice(None)) -> float:
        """Of a probe that sees these columns of the features."""
        probe = LinearProbe().fit(self.X[:, columns], self.y)
        return float((probe.predict(self.X_test[:, columns]) == self.y_test).mean())


def turn(image: Pixels, quarters: int) -> Pixels:
    """An exact rotation of a square view."""
    return np.ascontiguousarray(np.rot90(image, quarters))


def shift_hue(image: Pixels, quarters: int) -> Pixels:
    """The hue circle turned by quarters."""
    return np.asarray(hue_shift(image, turn=quarters / 4), np.uint8)


def _changed(change: Change, quarters: int, image: Pixels) -> Pixels:
    return change(image, quarters)


def task_of(t: Trained, lab: Lab, name: str, encoder: Encoder) -> Task:
    """`class`, `colour` or `rotation`: the lab's own sets, or four versions of each photograph."""
    if name == "class" and "clean" in lab.sets:
        return _task(encoder, t.data("probe"), t.data("clean"))
    if name in SPLITS and SPLITS[name] in lab.sets:
        return _task(encoder, t.data(f"{SPLITS[name]}_train"), t.data(SPLITS[name]))
    train, test = _parts(t, lab)
    if name == "class":
        return _task(encoder, train, test)
    change = turn if name == "rotation" else shift_hue
    X, y = _versions(encoder, train, change)
    return Task(X, y, *_versions(encoder, test, change))


def _task(encoder: Encoder, train: Dataset, test: Dataset) -> Task:
    a, b = (embed_dataset(encoder, d, workers=0, label=None) for d in (train, test))
    return Task(a.features, a.labels, b.features, b.labels)


def _parts(t: Trained, lab: Lab) -> tuple[Dataset, Dataset]:
    """Photographs to fit on and others to test on; an image is on one side with all its versions."""
    data = t.data("probe")
    order = np.random.default_rng(0).permutation(len(data))
    held = order[::HELD_OUT]
    test = t.data("clean") if "clean" in lab.sets else data.select(held[:TEST])
    if len(test) > TEST:
        test = test.select(np.random.default_rng(1).permutation(len(test))[:TEST])
    return data.select(np.setdiff1d(order, held)[:: max(1, len(data) // TRAIN)][:TRAIN]), test


def _versions(
    encoder: Encoder, data: Dataset, change: Change
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rows, labels = [], []
    for quarters in range(4):
        view = CenterView(encoder.card.size, change=partial(_changed, change, quarters))
        found = embed_dataset(encoder, data, transform=view, workers=0, label=None)
        rows.append(found.features)
        labels.append(np.full(len(found.features), quarters))
    return np.concatenate(rows), np.concatenate(labels)


@measure("rotation", "probe", "clean?", "rotated_train?", "rotated?")
def rotation(t: Trained, lab: Lab) -> Quantities:
    """A probe on the angle, 0, 90, 180 or 270 degrees."""
    return {"rotation": task_of(t, lab, "rotation", t.encoder).accuracy()}


@measure("colour", "probe", "clean?", "coloured_train?", "coloured?")
def colour(t: Trained, lab: Lab) -> Quantities:
    """A probe on hue: that of the object in the embedded set, the turn of the hue circle in photographs."""
    return {"colour": task_of(t, lab, "colour", t.encoder).accuracy()}


@measure("heads", "probe", "clean?", "coloured_train?", "coloured?", "rotated_train?", "rotated?")
def heads(t: Trained, lab: Lab) -> Quantities:
    """A probe fitted anew on each subset of heads, for each task."""
    from cuewise.probes.heads import blocks_of, columns_of

    encoder = load_encoder(f"{t.folder}#all")
    blocks = blocks_of(encoder)
    out: Quantities = {}
    for task in ("class", "colour", "rotation"):
        found = task_of(t, lab, task, encoder)
        for subset in SUBSETS:
            names = list(blocks) if subset == "all" else subset.split("+")
            out[quantity(task, subset)] = found.accuracy(columns_of(blocks, names))
    return out


@measure("contributions", "coloured_train", "coloured")
def contributions(t: Trained, lab: Lab) -> Quantities:
    """Entropy in bits of the heads' shares, for hue with superclass (several cues) and for texture, on the same images."""
    from cuewise.probes.heads import blocks_of, contributions, entropy_bits, weights_on_features

    encoder = load_encoder(f"{t.folder}#all")
    blocks = blocks_of(encoder)
    found = [embed_dataset(encoder, t.data(r), workers=0, label=None) for r in ("coloured_train", "coloured")]
    out: Quantities = {}
    for task in ("several", "texture"):
        labels = []
        for part, role in zip(found, ("coloured_train", "coloured")):
            columns = {k: np.asarray(v)[part.index] for k, v in t.data(role).columns.items()}
            both = columns["colour"] * SUPERCLASS + columns["shape"] // SUPERCLASS
            labels.append(columns["texture"] if task == "texture" else both)
        probe = LinearProbe().fit(found[0].features, labels[0])
        right = probe.predict(found[1].features) == labels[1]
        shares = contributions(
            weights_on_features(probe), found[1].features[right], labels[1][right], blocks
        ).mean(0)
        out[f"entropy/{task}"] = entropy_bits(shares)
        out |= {f"share/{task}/{head}": float(s) for head, s in zip(blocks, shares)}
    return out
