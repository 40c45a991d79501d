"""Shuffled tiles: every part stays, the configuration goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels
from cuewise.errors import UserError


def shuffle_tiles(image: Pixels, order: np.ndarray[tuple[int], np.dtype[np.int64]], tiles: int) -> Pixels:
    """Tile k of the result is tile order[k] of the image; tiles×tiles equal tiles, what is left at the end stays.

    image: H×W×C uint8; a rest of less than `tiles` pixels at the right and at the bottom is not moved.
    """
    height, width = image.shape[0] // tiles, image.shape[1] // tiles
    inner = image[: height * tiles, : width * tiles]
    cut = inner.reshape(tiles, height, tiles, width, -1).swapaxes(1, 2)  # row, column, then pixels of a tile
    joined = cut[order // tiles, order % tiles].reshape(cut.shape).swapaxes(1, 2).reshape(inner.shape)
    out = image.copy()
    out[: height * tiles, : width * tiles] = joined
    return out


@dataclass(frozen=True)
class Tiles(Cue):
    """See `shuffle_tiles`."""

    name = "tiles"
    summary = "shuffle tiles: keep the parts, remove their configuration"
    moves = True
    equation = "out(tile t) = image(tile π(t)), π a permutation that leaves no tile in its place"
    tiles: Annotated[int, "tiles per side"] = 4

    def __post_init__(self) -> None:
        if self.tiles < 1:
            raise UserError(f"tiles: {self.tiles} per side; give 1 or more")

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        """An order in which no tile stays where it was, where there are two or more."""
        if self.tiles > min(height, width):
            raise UserError(
                f"tiles: {self.tiles} per side do not fit an image of {height}×{width}; give fewer"
            )
        count = self.tiles * self.tiles
        circle = rng.permutation(count)
        order = np.empty_like(circle)  # the next tile of a random circle: a derangement in one draw
        order[circle] = np.roll(circle, 1)
        return {"order": order.tolist()}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return shuffle_tiles(image, np.array(drawn["order"]), self.tiles)
