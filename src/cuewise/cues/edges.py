"""Sketch: the edges of an image as dark lines on white paper; no colour, no texture, no shading.

Difference of Gaussians with a soft threshold (Winnemöller, Olsen & Gooch 2006) after edge-preserving smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.diffusion import diffuse, scaled_steps
from cuewise.cues.forms import Pixels, any_form
from cuewise.cues.levels import Array, Levels, as_colour, from_levels, to_levels
from cuewise.errors import UserError


@any_form()
def sketch(image: Array, *, width: float = 1.0, sensitivity: float = 1.0) -> Array:
    """E = 1 + tanh(φ·D) where D = G_σ − τ·G_1.6σ < 0, else white, the strongest of the three channels; G blurs
    after diffusion has removed texture, and φ is such that the image's own stronger edges come out black.

    image: H×W×3, uint8 or float in [0, 1], in any form. width: σ in pixels at 224 px, in proportion elsewhere (not below 0.6).
    sensitivity: larger draws fainter edges too.
    """
    if width <= 0 or sensitivity <= 0:
        raise UserError("sketch: width and sensitivity must be above 0")
    levels = to_levels(as_colour(image))
    side = min(levels.shape[:2])
    levels = diffuse(levels, scaled_steps(side, 30), 12.0, 0.2, 2, "vector")
    sigma = max(0.6, width * side / 224)
    response = np.minimum(_blur(levels, sigma) - 0.99 * _blur(levels, 1.6 * sigma), 0).min(-1)
    # The strongest twentieth of the pixels is nearly black; below two grey levels there is noise only.
    full = max(2.0, -float(np.quantile(response, 0.05)))
    lines = 255 * (1 + np.tanh(1.5 * sensitivity * response / full))
    return from_levels(np.repeat(lines[..., None], 3, -1).astype(np.float32), image)


def _blur(levels: Levels, sigma: float) -> Levels:
    return np.asarray(cv2.GaussianBlur(levels, (0, 0), sigma, borderType=cv2.BORDER_REFLECT), np.float32)


@dataclass(frozen=True)
class Sketch(Cue):
    """See `sketch`."""

    name = "sketch"
    summary = "keep outlines as dark lines on white"
    citation = "Winnemöller, Olsen and Gooch 2006"
    equation = "out = 1 + tanh(φ·D) where D = G_σ − 0.99·G_1.6σ < 0, else 1; after diffusion"
    width: Annotated[float, "of the lines: σ in pixels at 224 px"] = 1.0
    sensitivity: Annotated[float, "larger draws fainter edges too"] = 1.0

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return sketch(image, width=self.width, sensitivity=self.sensitivity)
