"""Width, height and proportions."""

from __future__ import annotations

import numpy as np

from cuewise.inspection.clue import Clue, Look, Numbers


class SizeClue(Clue):
    """Logarithms of width, height and aspect ratio, and whether the image is square."""

    name = "size"
    summary = "width, height and aspect ratio of the image"
    subject = "The size of the image"

    def numbers(self, look: Look) -> Numbers:
        height, width = look.sample.image.shape[:2]
        sides = np.log([width, height, width / height])
        return np.array([*sides, width == height], np.float32)
