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
    """E = 1 + tanh(φ·D) where D = G_σ − τ·G_1.6σ < 0, else white; G blurs the luma after diffusion has removed texture.

    image: H×W×3, uint8 or float in [0, 1]. width: σ in pixels at 224 px, in proportion elsewhere (not below 0.6).
    sensitivity: larger draws fainter edges too.
    """
    if width <= 0 or sensitivity <= 0:
        raise UserError("sketch: width and sensitivity must be above 0")
    levels = to_levels(as_colour(image))
    side = min(levels.shape[:2])
    luma = levels @ np.array([0.299, 0.587, 0.114], np.float32)
    luma = diffuse(luma, scaled_steps(side, 30), 12.0, 0.2, 2)
    sigma = max(0.6, width * side / 224)
    response = _blur(luma, sigma) - 0.99 * _blur(luma, 1.6 * sigma)
    lines = 255 * (1 + np.tanh(0.5 * sensitivity * np.minimum(response, 0)))
    return from_levels(np.repeat(lines[..., None], 3, -1).astype(np.float32), image)


def _blur(plane: Levels, sigma: float) -> Levels:
    return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_REFLECT), np.float32)


@register("sketch", "keep outlines as dark lines on white", width=1.0, sensitivity=1.0)
def sketch_cue(
    image: Image, rng: np.random.Generator, *, width: float = 1.0, sensitivity: float = 1.0
) -> Image:
    """See `sketch`."""
    return sketch(image, width=width, sensitivity=sensitivity)
