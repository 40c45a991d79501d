"""Low frequencies: where it is bright and where it is dark."""

from __future__ import annotations

import numpy as np
from PIL import Image as Pillow

from cuewise.data import Image
from cuewise.inspection.clue import SIDE, Clue, Look, Numbers

CELLS = 8


class LayoutClue(Clue):
    """The grey image as 8×8 cells."""

    name = "layout"
    summary = "low frequencies: an 8×8 grey copy of the image"
    subject = "The layout (an 8×8 grey copy)"
    shortcut = False

    def numbers(self, look: Look) -> Numbers:
        return _cells(look).ravel()

    def picture(self, look: Look) -> Image:
        cells = Pillow.fromarray(_cells(look).astype(np.uint8))
        return np.asarray(cells.resize((SIDE, SIDE), Pillow.Resampling.NEAREST).convert("RGB"))


def _cells(look: Look) -> Numbers:
    step = SIDE // CELLS
    return look.grey.reshape(CELLS, step, CELLS, step).mean((1, 3))
