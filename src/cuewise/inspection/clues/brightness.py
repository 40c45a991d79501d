"""How bright an image is and how much contrast it has."""

from __future__ import annotations

import numpy as np

from cuewise.inspection.clue import Clue, Look, Numbers

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class BrightnessClue(Clue):
    """Mean, standard deviation and quantiles of the luminance."""

    name = "brightness"
    summary = "mean, spread and quantiles of the luminance"
    subject = "Brightness and contrast"

    def numbers(self, look: Look) -> Numbers:
        grey = look.grey
        return np.array([grey.mean(), grey.std(), *np.quantile(grey, QUANTILES)], np.float32)
