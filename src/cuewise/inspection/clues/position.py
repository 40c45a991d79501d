"""Where the objects are and how large, where boxes say so."""

from __future__ import annotations

import numpy as np

from cuewise.data import Image
from cuewise.inspection.clue import Clue, Look, Numbers


class PositionClue(Clue):
    """Centre, size and area of the largest box relative to the image, and the number of boxes."""

    name = "position"
    summary = "place and size of the largest box, and the number of boxes"
    subject = "The position of the boxes"
    needs = "boxes: give DATA with annotated objects (docs/data.md)"

    def numbers(self, look: Look) -> Numbers | None:
        boxes = look.sample.facts.boxes
        if boxes is None:
            return None
        if not len(boxes):
            return np.array([0.5, 0.5, 0, 0, 0, 0], np.float32)
        left, top, right, bottom = _largest(look)
        centre = [(left + right) / 2, (top + bottom) / 2]
        size = [right - left, bottom - top, np.sqrt((right - left) * (bottom - top))]
        return np.array([*centre, *size, np.log1p(len(boxes))], np.float32)

    def picture(self, look: Look) -> Image | None:
        boxes = look.sample.facts.boxes
        if boxes is None or not len(boxes):
            return None
        out = np.full_like(look.small, 40)
        left, top, right, bottom = (round(float(v) * len(out)) for v in _largest(look))
        out[top:bottom, left:right] = 220
        return out


def _largest(look: Look) -> tuple[float, float, float, float]:
    """Corners of the largest box as shares of width and height."""
    boxes = look.sample.facts.boxes
    assert boxes is not None
    height, width = look.sample.image.shape[:2]
    left, top, right, bottom = boxes.corners[int(boxes.areas.argmax())]
    return left / width, top / height, right / width, bottom / height
