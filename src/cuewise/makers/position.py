"""The set with its objects at other places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuewise.cues.cutout import object_at
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Picture, item_seed
from cuewise.makers.objects import ObjectMaker, mask_of, masks_for, with_masks


@dataclass(frozen=True)
class Position(ObjectMaker):
    """See `cuewise.cues.cutout.object_at`; the hole is filled smoothly."""

    name = "position"
    summary = "the object moved within its own background, the hole filled smoothly"
    inputs = 2  # image, mask
    down: Annotated[float, "0 the object touches the upper edge, 1 the lower one; −1: drawn"] = -1.0
    right: Annotated[float, "0 the object touches the left edge, 1 the right one; −1: drawn"] = -1.0

    def __post_init__(self) -> None:
        for name in ("down", "right"):
            given = getattr(self, name)
            if given != -1 and not 0 <= given <= 1:
                raise UserError(f"make position: {name}={given}: from 0 to 1, or −1 to draw it")

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        return with_masks(dataset, masks_for(self.name, dataset, self.masks, self.value), end, both)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.name, piece.names[0])
        drawn = np.random.default_rng(own).random(2).tolist()
        place = tuple(d if given < 0 else given for given, d in zip((self.down, self.right), drawn))
        image = object_at(piece.image(), mask_of(piece), (place[0], place[1]))
        yield Picture(image, own, {"down": place[0], "right": place[1]})
