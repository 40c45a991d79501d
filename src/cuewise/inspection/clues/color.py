"""Colours without their places."""

from __future__ import annotations

import numpy as np

from cuewise.data import Image
from cuewise.inspection.clue import Clue, Look, Numbers

LEVELS = 5  # per channel


class ColorClue(Clue):
    """The joint histogram of red, green and blue, as square roots: rare colours count as well."""

    name = "color"
    summary = "which colours there are, not where"
    subject = "The colour histogram"

    def numbers(self, look: Look) -> Numbers:
        levels = look.small.reshape(-1, 3).astype(np.int64) * LEVELS // 256
        bins = levels @ np.array([LEVELS * LEVELS, LEVELS, 1])
        share = np.bincount(bins, minlength=LEVELS**3) / len(bins)
        return np.sqrt(share).astype(np.float32)

    def picture(self, look: Look) -> Image:
        """The same pixels, sorted by brightness."""
        pixels = look.small.reshape(-1, 3)
        order = np.argsort(pixels.sum(1, dtype=np.int64), kind="stable")
        return np.ascontiguousarray(pixels[order].reshape(look.small.shape).transpose(1, 0, 2))
