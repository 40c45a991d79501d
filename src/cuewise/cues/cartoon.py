"""Cartoon: a flat palette by repeated bilateral filtering, with dark outlines from an adaptive threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np

from cuewise.cues.bilateral import bilateral
from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels, any_form
from cuewise.cues.levels import Array, as_colour, from_levels, to_bytes


@any_form()
def cartoon(image: Array, *, passes: int = 7) -> Array:
    """colour AND outline of an H×W×3 image, uint8 or float in [0, 1], in any form.

    colour: shrink 4×, `passes` bilateral filters (d = 9, σ_r = 9, σ_s = 7), enlarge to the exact size.
    outline: luma of the original, median 7, black where below the mean of its 9×9 neighbourhood less 2.
    Below 112 px the shrinking and the median are smaller (2× and 5, below 56 px none and 3), or nothing would remain.
    """
    picture = to_bytes(as_colour(image))
    height, width = picture.shape[:2]
    side = min(height, width)
    shrink, median = (4, 7) if side >= 112 else (2, 5) if side >= 56 else (1, 3)
    small = (max(1, width // shrink), max(1, height // shrink))
    colour = np.asarray(cv2.resize(picture, small, interpolation=cv2.INTER_AREA), np.uint8)
    for _ in range(passes):
        colour = bilateral(colour, diameter=9, sigma_range=9.0, sigma_space=7.0)
    colour = np.asarray(cv2.resize(colour, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
    luma = cv2.medianBlur(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), median)
    outline = cv2.adaptiveThreshold(luma, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 9, 2)
    drawn = colour & np.asarray(outline, np.uint8)[..., None]
    return from_levels(drawn.astype(np.float32), image)


@dataclass(frozen=True)
class Cartoon(Cue):
    """See `cartoon`."""

    name = "cartoon"
    suppresses = True
    summary = "flat colours and dark outlines, no texture"
    citation = "Mishra et al. 2020"
    equation = (
        "out = palette AND outlines: repeated bilateral filters of the shrunken image; black where the "
        "median-filtered luma is below its local mean − 2"
    )
    passes: Annotated[int, "of the bilateral filter"] = 7

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return cartoon(image, passes=self.passes)
