"""Copies of an image: within a set, and between sets, where they are a leak from training to test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.overlap import near_pairs
from cuewise.inspection.gather import Gathered

Ids = NDArray[np.int64]
SHOWN = 20  # pairs that inspect.json names
ALIKE = 12.0  # grey levels: mean difference of two 8×8 copies in colour below which they are of one picture
Pair = tuple[int, int]  # rows of the two sets


@dataclass(frozen=True)
class CopiedImages:
    """Pairs of images with equal content, and of nearly equal pictures; rows count from the first and second set."""

    same: list[Pair]
    near: list[Pair]

    def as_dict(self, names: tuple[Sequence[str], Sequence[str]]) -> dict[str, Any]:
        """Counts of images of the first set that have a copy, and the first pairs by name."""

        def named(pairs: list[Pair]) -> list[list[str]]:
            return [[names[0][i], names[1][j]] for i, j in pairs[:SHOWN]]

        return {
            "same": len({i for i, _ in self.same}),
            "near": len({i for i, _ in self.near}),
            "pairs": named(self.same),
            "near_pairs": named(self.near),
        }


def copies_within(found: Gathered) -> CopiedImages:
    """Each image with an earlier one of equal content, or with the nearest of nearly equal pictures."""
    first: dict[bytes, int] = {}
    same = []
    for row, digest in enumerate(found.digests):
        other = first.setdefault(digest, row)
        if other != row:
            same.append((row, other))
    known = {frozenset(pair) for pair in same}
    near = {tuple(sorted(pair)) for pair in near_pairs(found.bits, found.bits, within=True)}
    close = [(j, i) for i, j in sorted(near) if found.digests[i] != found.digests[j]]
    return CopiedImages(same, _alike([pair for pair in close if frozenset(pair) not in known], found, found))


def copies_between(first: Gathered, second: Gathered) -> CopiedImages:
    """Each image of the first set that the second set has too."""
    there: dict[bytes, int] = {}
    for row, digest in enumerate(second.digests):
        there.setdefault(digest, row)
    same = [(row, there[d]) for row, d in enumerate(first.digests) if d in there]
    known = {i for i, _ in same}
    near = [(i, j) for i, j in near_pairs(first.bits, second.bits) if i not in known]
    return CopiedImages(same, _alike(near, first, second))


def _alike(pairs: list[Pair], first: Gathered, second: Gathered) -> list[Pair]:
    """Those whose colours agree, too."""
    return [
        (i, j) for i, j in pairs if np.abs(first.thumbs[i].astype(np.int16) - second.thumbs[j]).mean() < ALIKE
    ]


def groups_of(count: int, copies: CopiedImages) -> Ids:
    """A number per image, the same for copies of each other."""
    group = np.arange(count)

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = int(group[i])
        return i

    for i, j in [*copies.same, *copies.near]:
        group[root(i)] = root(j)
    return np.array([root(i) for i in range(count)], np.int64)


def contradictions(copies: CopiedImages, labels: Ids) -> list[Pair]:
    """Copies of equal content under different labels: at least one of the two labels is wrong."""
    return [(i, j) for i, j in copies.same if labels[i] != labels[j]]
