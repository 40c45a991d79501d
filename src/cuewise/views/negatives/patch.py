"""Patch negatives: shuffled patches of the view itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cuewise.cues import patches
from cuewise.data import Dataset
from cuewise.views.negatives.negative import Negative, Origin, Pixels


@dataclass(frozen=True)
class PatchNegative(Negative):
    """Tiles of random d×d patches of the view: its texture and colours without its layout."""

    name = "patch"
    summary = "tiles of random patches of the query view: its texture and colours without its layout"
    options = ("patch_size", "patch_augment", "overlap")

    patch_size: tuple[int, int] | None = None  # both ends inclusive; None: `patches.default_range`
    overlap: patches.Overlap = "allow"
    augment: tuple[patches.Augment, ...] = ()

    @classmethod
    def build(cls, source: str, count: int, options: Mapping[str, Any], data: Dataset, seed: int) -> Self:
        sizes = options["patch_size"]
        return cls(
            source,
            count,
            patches.parse_range(sizes) if sizes else None,
            options["overlap"] or "allow",
            tuple(options["patch_augment"]),
        )

    def sample(self, rng: np.random.Generator, size: int) -> tuple[patches.PatchParams, ...]:
        return tuple(
            patches.sample(rng, size, size, size, self.patch_size, overlap=self.overlap, augment=self.augment)
            for _ in range(self.count)
        )

    def render(self, origin: Origin, drawn: patches.PatchParams, number: int) -> Pixels:
        return patches.apply(origin.view, drawn)
