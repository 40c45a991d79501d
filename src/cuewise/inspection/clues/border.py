"""The frame of an image, where there is mostly background."""

from __future__ import annotations

import numpy as np

from cuewise.data import Image
from cuewise.inspection.clue import SIDE, Clue, Look, Numbers

CELLS = 16  # of a side
RING = 2  # cells, an eighth of the side


class BorderClue(Clue):
    """The outer ring of a 16×16 copy in colour."""

    name = "border"
    summary = "the outer eighth of the image on each side, the middle hidden"
    subject = "The border (mostly background)"

    def numbers(self, look: Look) -> Numbers:
        return look.resized(CELLS)[_ring(CELLS, RING)].astype(np.float32).ravel()

    def picture(self, look: Look) -> Image:
        return np.where(_ring(SIDE, SIDE * RING // CELLS)[..., None], look.small, np.uint8(127))


def _ring(side: int, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    out = np.ones((side, side), bool)
    out[width : side - width, width : side - width] = False
    return out
