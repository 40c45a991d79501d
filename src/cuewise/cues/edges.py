"""Sketch: the edges of an image as dark lines on white paper; no colour, no texture, no shading.

Difference of Gaussians with a soft threshold (Winnemöller, Olsen & Gooch 2006) after edge-preserving smoothing.
"""

from __future__ import annotations

import cv2
import numpy as np

from cuewise.cues.diffusion import diffuse, scaled_steps
from cuewise.cues.levels import Array, Levels, as_colour, from_levels, to_levels
from cuewise.cues.registry import Image, register
from cuewise.errors import UserError


def sketch(image: Array, *, width: float = 1.0, sensitivity: float = 1.0) -> Array:
    """E = 1 + tanh(φ·D) where D = G_σ − τ·G_1.6σ < 0, else white, the strongest of the three channels; G blurs
    after diffusion has removed texture, and φ is such that the image's own stronger edges come out black.

    image: H×W×3, uint8 or float in [0, 1]. width: σ in pixels at 224 px, in proportion elsewhere (not below 0.6).
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


@register("sketch", "keep outlines as dark lines on white", width=1.0, sensitivity=1.0)
def sketch_cue(
    image: Image, rng: np.random.Generator, *, width: float = 1.0, sensitivity: float = 1.0
) -> Image:
    """See `sketch`."""
    return sketch(image, width=width, sensitivity=sensitivity)
