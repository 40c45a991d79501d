"""The cue-conflict set: the shape of one image, the texture of another, for the user's own classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuewise.cues.conflict import conflict, pairs
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, Piece
from cuewise.makers.maker import Maker, Picture, item_seed
from cuewise.makers.names import Stems

PUBLISHED = 1280  # stimuli in the published set: 16 classes × 80


@dataclass(frozen=True)
class CueConflict(Maker):
    """Balanced pairs of (shape, texture) images: <shape>/<shape><i>-<texture><j>."""

    name = "cue-conflict"
    summary = "the shape of one image with the texture of another, for your own classes"
    inputs = 2
    takes_both = False
    n: Annotated[int, "how many stimuli [as many as the published set, or as the images allow]"] = 0
    shape: Annotated[float, "how much of the large-scale brightness is that of the shape image, 0 to 1"] = 0.9
    block: Annotated[float, "side of the texture blocks, as a share of the shorter side"] = 1 / 6
    focus: Annotated[float, "central share of the texture image that blocks come from"] = 0.8

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """Pairs of images of different classes, each class equally often."""
        if dataset.labels is None:
            raise UserError("make cue-conflict needs classes: give a set with one folder for each class")
        members = {name: np.flatnonzero(dataset.labels == k) for k, name in enumerate(dataset.classes)}
        counts = {name: len(found) for name, found in members.items() if len(found)}
        possible = sum(a * b for a, b in itertools.permutations(counts.values(), 2))
        found = pairs(counts, self.n or min(PUBLISHED, possible), seed)
        rows = [(members[p.shape][p.shape_index], members[p.texture][p.texture_index]) for p in found]
        names = [f"{p.shape}/{p.name}" for p in found]
        stems = Stems(names.__getitem__, len(names), lambda stem, i: (f"{stem}.{end}",))
        facts: dict[str, Sequence[str]] = {
            "class": [p.shape for p in found],
            "shape": [p.shape for p in found],
            "texture": [p.texture for p in found],
        }
        sources = np.array(rows, np.int64).reshape(-1, 2)
        return Layout(dataset, sources, stems, (("", f".{end}"),), None, facts)

    def draw(self, piece: Piece, seed: int) -> Iterator[Picture]:
        """One stimulus, in the size of the image that gives the shape."""
        own = item_seed(seed, self.name, "\0".join(piece.names))
        image = conflict(
            piece.image(0),
            piece.image(1),
            np.random.default_rng(own),
            shape=self.shape,
            block=self.block,
            focus=self.focus,
        )
        yield Picture(image, own)
