"""Patch negatives: shuffled patches of the view itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from cuewise.cues import patches
from cuewise.data import Dataset
from cuewise.views import batched
from cuewise.views.negatives.negative import Negative, Origin, Pixels


@dataclass(frozen=True)
class PatchNegative(Negative):
    """Tiles of random d×d patches of the view: its texture and colours without its layout."""

    name = "patch"
    summary = "tiles of random patches of the query view: its texture and colours without its layout"
    reads = ("patch_size", "patch_augment", "overlap")
    of_image = False
    on_device = True

    patch_size: tuple[int, int] | None = None  # both ends inclusive; None: `patches.default_range`
    overlap: patches.Overlap = "allow"
    augment: tuple[patches.Augment, ...] = ()

    @classmethod
    def build(cls, source: str, count: int, options: Mapping[str, Any], data: Dataset, seed: int) -> Self:
        sizes = patches.parse_range(options["patch_size"]) if options["patch_size"] else None
        return cls(source, count, sizes, options["overlap"] or "allow", tuple(options["patch_augment"]))

    def sample(self, rng: np.random.Generator, size: int) -> tuple[patches.PatchParams, ...]:
        return tuple(
            patches.sample(rng, size, size, size, self.patch_size, overlap=self.overlap, augment=self.augment)
            for _ in range(self.count)
        )

    def render(self, origin: Origin, drawn: patches.PatchParams, number: int) -> Pixels:
        return patches.apply(origin.view, drawn)

    def packed(self, drawn: Sequence[patches.PatchParams]) -> tuple[Tensor, Tensor, Tensor]:
        """Sides N, corners N×T×2 and turns N×T×3, zero behind the last patch."""
        most = max(len(p.tops) for p in drawn)
        corners, turns = (torch.zeros(len(drawn), most, n, dtype=torch.int64) for n in (2, 3))
        for row, p in enumerate(drawn):
            n = len(p.tops)
            corners[row, :n] = torch.tensor([p.tops, p.lefts]).T
            for column, values in enumerate((p.turns, p.vflips, p.hflips)):
                if values:
                    turns[row, :n, column] = torch.tensor(values)
        return torch.tensor([p.patch for p in drawn]), corners, turns

    def render_packed(self, views: Tensor, packed: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return batched.patched(views, *packed)

    def doubts(self, size: int) -> list[str]:
        low, high = self.patch_size or patches.default_range(size)
        if high < size:
            return []
        share = 1 / (size - min(low, size) + 1)  # sides are cut to the view's, and drawn uniformly
        return [
            f"--patch-size {low}:{high} on views of {size} px: {share:.0%} of the patch negatives are the view itself, "
            f"and are pushed away from it; give a high end below {size}"
        ]
