"""The cue-conflict set: the shape of one image, the texture of another, for the user's own classes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from cuewise.cues.conflict import conflict, pairs
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.make.makers import Maker, Picture, Settings, item_seed
from cuewise.make.names import Stems
from cuewise.make.plan import Piece, Plan

PUBLISHED = 1280  # stimuli in the published set: 16 classes × 80
PARTS = {key: inspect.signature(conflict).parameters[key].default for key in ("shape", "block", "focus")}


def lay(dataset: Dataset, settings: Settings, seed: int, end: str) -> Plan:
    """Balanced pairs of (shape, texture) images: <shape>/<shape><i>-<texture><j>."""
    if dataset.labels is None:
        raise UserError("make cue-conflict needs classes: give a set with one folder a class")
    members = {
        name: np.flatnonzero(dataset.labels == k) for k, name in enumerate(dataset.classes)
    }  # numbers in the set, by class
    counts = {name: len(found) for name, found in members.items() if len(found)}
    room = sum(a * b for a, b in itertools.permutations(counts.values(), 2))
    found = pairs(counts, settings["n"] or min(PUBLISHED, room), seed)
    rows = [(members[p.shape][p.shape_index], members[p.texture][p.texture_index]) for p in found]
    names = [f"{p.shape}/{p.name}" for p in found]
    stems = Stems(names.__getitem__, len(names), lambda stem, i: (f"{stem}.{end}",))
    facts: dict[str, Sequence[str]] = {
        "class": [p.shape for p in found],
        "shape": [p.shape for p in found],
        "texture": [p.texture for p in found],
    }
    return Plan(dataset, np.array(rows, np.int64).reshape(-1, 2), stems, (("", f".{end}"),), None, facts)


def draw(piece: Piece, settings: Settings, seed: int) -> Iterator[Picture]:
    """One stimulus, in the size of the image that gives the shape."""
    own = item_seed(seed, "cue-conflict", "\0".join(piece.names))
    parts = {key: settings[key] for key in PARTS}
    yield Picture(conflict(piece.image(0), piece.image(1), np.random.default_rng(own), **parts), own)


CONFLICT = Maker(
    "cue-conflict",
    "the shape of one image with the texture of another, for your own classes",
    {"n": 0, **PARTS},
    draw,
    lay,
    inputs=2,
    takes_both=False,
)
