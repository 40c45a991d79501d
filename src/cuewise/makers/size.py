"""The set with its objects in another size."""

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
class Size(ObjectMaker):
    """See `cuewise.cues.cutout.object_at`; the object is in the centre, the hole is filled smoothly."""

    name = "size"
    summary = "the object scaled, in the centre of its own background, the hole filled smoothly"
    inputs = 2  # image, mask
    share: Annotated[tuple[float, float], "longer side of the object, of the image's shorter side"] = (
        0.2,
        0.8,
    )

    def __post_init__(self) -> None:
        given = self.share if isinstance(self.share, tuple) else (self.share, self.share)
        if (
            len(given) != 2
            or not all(isinstance(s, int | float) for s in given)
            or not 0 < given[0] <= given[1] <= 1
        ):
            raise UserError(
                f"make size: share={self.share}: two rising shares of 0 to 1, such as [0.2,0.8], or one"
            )
        object.__setattr__(self, "share", (float(given[0]), float(given[1])))

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        return with_masks(dataset, masks_for(self.name, dataset, self.masks, self.value), end, both)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.name, piece.names[0])
        share = float(np.random.default_rng(own).uniform(*self.share))
        yield Picture(object_at(piece.image(), mask_of(piece), (0.5, 0.5), share), own, {"share": share})
