"""The set with other backgrounds: each object where it is, on another image's background, on grey, or removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from cuewise.cues.cutout import BACKGROUNDS, PARTNERS, change_background
from cuewise.data import Dataset
from cuewise.errors import unknown
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Picture, item_seed
from cuewise.makers.objects import ObjectMaker, mask_of, masks_for, partners_of, with_masks


@dataclass(frozen=True)
class Background(ObjectMaker):
    """See `cuewise.cues.cutout.change_background`; which background an image gets follows from the seed and its name."""

    name = "background"
    summary = "the object kept, its background exchanged with another image's, removed, or alone"
    inputs = 4  # image, mask, image of the background, its mask
    ground: Annotated[
        str, "other (of another class), same (of the same class), removed (grey), only (no object)"
    ] = "other"

    def __post_init__(self) -> None:
        if self.ground not in BACKGROUNDS:
            raise unknown("make background: no ground", self.ground, BACKGROUNDS)

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        masks, partners = masks_for(self.name, dataset, self.masks, self.value), None
        if self.ground in PARTNERS:
            seeds = [
                item_seed(seed, f"background {self.ground}", dataset.name(i)) for i in range(len(dataset))
            ]
            partners = partners_of(self.name, dataset, masks, self.ground == "same", seeds)
        return with_masks(dataset, masks, end, both, partners)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.name, piece.names[0])
        exchanged = self.ground in PARTNERS
        other = (piece.image(2), mask_of(piece, 3)) if exchanged else None
        image = change_background(piece.image(), mask_of(piece), self.ground, other)
        yield Picture(image, own, {"background": piece.names[2]} if exchanged else {})
