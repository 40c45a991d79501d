"""Cue-conflict images of a set's own classes, made when they are looked at."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.keys import data_key
from cuewise.cues.conflict import SMALLEST, Pair, conflict, pairs
from cuewise.cues.corruptions import corruption_rng
from cuewise.data import BrokenImage, Dataset, Image
from cuewise.data.source import Unannotated
from cuewise.views import center


class Conflicts(Unannotated):
    """A Source: image k has the shape of one image and the texture of another, of another class."""

    LARGEST = 224  # sides; larger images are cut to the middle and made smaller

    def __init__(self, data: Dataset, rows: list[tuple[int, int]], found: list[Pair], seed: int) -> None:
        assert data.labels is not None
        self.data, self.rows, self.pairs, self.seed = data, rows, found, seed
        self.classes = data.classes
        place = {name: i for i, name in enumerate(data.classes)}
        self.labels: NDArray[np.int64] = np.array([place[p.shape] for p in found], np.int64)
        texture = np.array([place[p.texture] for p in found], np.int64)
        self.columns: dict[str, NDArray[Any]] = {"shape": self.labels, "texture": texture}

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, i: int) -> str:
        return f"{self.pairs[i].shape}/{self.pairs[i].name}"

    def image(self, i: int) -> Image:
        content, texture = (self._part(j) for j in self.rows[i])
        try:
            return conflict(content, texture, corruption_rng(self.seed, self.name(i), "conflict", 0))
        except Exception as error:
            raise BrokenImage(self.name(i), f"no cue conflict can be made of it ({error})") from error

    def _part(self, j: int) -> Image:
        image = self.data.image(j)
        short = min(image.shape[:2])
        return center(image, max(SMALLEST, min(short, self.LARGEST)))

    def read(self, i: int) -> bytes | None:
        return None

    def content_key(self) -> str:
        return f"{data_key(self.data)} conflicts with lines {self.seed} {self.rows}"

    def fingerprint(self) -> dict[str, Any]:
        part = self.data.fingerprint()
        digest = hashlib.sha256(f"{part['hash']} conflicts {self.seed} {self.rows}".encode()).hexdigest()
        whole = {"count": len(self), "hash": digest}
        source = {"data": "cue conflicts made in memory", "kind": "conflicts", **whole}
        return {**whole, "sources": [source], "skipped": []}


def made_conflicts(data: Dataset) -> Conflicts | None:
    """The source of a set of conflict images made here; None for any other set."""
    (source, *more) = data.sources
    return source if isinstance(source, Conflicts) and not more else None


def conflicts_of(data: Dataset, limit: int, seed: int) -> Conflicts | None:
    """`limit` balanced pairs (0: 1280 at most); None with fewer than two classes."""
    if data.labels is None:
        return None
    members = {name: np.flatnonzero(data.labels == k) for k, name in enumerate(data.classes)}
    counts = {name: len(found) for name, found in members.items() if len(found)}
    if len(counts) < 2:
        return None
    most = sum(a * b for a, b in itertools.permutations(counts.values(), 2))
    found = pairs(counts, min(limit or 1280, most), seed)
    rows = [(int(members[p.shape][p.shape_index]), int(members[p.texture][p.texture_index])) for p in found]
    return Conflicts(data, rows, found, seed)
