"""The outline of the object, where a mask says what belongs to it."""

from __future__ import annotations

import numpy as np
from PIL import Image as Pillow

from cuewise.data import Image
from cuewise.inspection.clue import SIDE, Clue, Look, Numbers

CELLS = 16


class SilhouetteClue(Clue):
    """The share of each of 16×16 cells that the mask covers."""

    name = "silhouette"
    summary = "the mask of the object, where the set has masks"
    subject = "The silhouette (the mask alone)"
    shortcut = False
    needs = "masks: give --masks DATA, named as the images, or a set that brings its own"

    def numbers(self, look: Look) -> Numbers | None:
        mask = _mask(look, CELLS)
        return None if mask is None else mask.ravel() / np.float32(255)

    def picture(self, look: Look) -> Image | None:
        mask = _mask(look, SIDE)
        return None if mask is None else np.repeat(mask.astype(np.uint8)[..., None], 3, axis=2)


def _mask(look: Look, side: int) -> Numbers | None:
    """0 background to 255 object; 255 in a mask is a border that nobody labelled, and counts as background."""
    mask = look.sample.facts.mask
    if mask is None:
        return None
    inside = Pillow.fromarray(np.where((mask > 0) & (mask < 255), 255, 0).astype(np.uint8))
    return np.asarray(inside.resize((side, side), Pillow.Resampling.BOX), np.float32)
