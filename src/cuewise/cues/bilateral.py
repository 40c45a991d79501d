"""Bilateral filter: averages neighbours that are near in space and in colour; keeps edges, loses fine texture.

Tomasi & Manduchi 1998, with the conventions of OpenCV's filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import cv2
import numpy as np

from cuewise.cues.bilateral_kernel import POWERS, bilateral_pixels
from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.exp2_kernel import LOG2_E, ROUND
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Array, Levels, from_levels, to_levels
from cuewise.errors import UserError


@any_form()
def bilateral(
    image: Array, *, diameter: int = 9, sigma_range: float = 75.0, sigma_space: float = 75.0
) -> Array:
    """Weighted mean over a disc with w = exp(−‖Δp‖²/2σ_s²)·exp(−(Σ_c |ΔI_c|)²/2σ_r²), border mirrored.

    image: uint8 or float in [0, 1], H×W, H×W×1 or H×W×3, in any form. sigma_range in grey levels of 0–255 for every kind of
    image, sigma_space and diameter in pixels. Colour distance is the sum of the channels' differences, as in OpenCV.
    """
    if diameter < 1 or sigma_range < 1 or sigma_space <= 0:
        raise UserError("bilateral: diameter and sigma_range must be at least 1 and sigma_space above 0")
    levels = image if image.dtype == np.uint8 else to_levels(image)
    filtered = _filter(levels.reshape(*levels.shape[:2], -1), diameter // 2, sigma_range, sigma_space)
    filtered = filtered.reshape(image.shape)
    return filtered if image.dtype == np.uint8 else from_levels(filtered, image)


def _filter(levels: Array, radius: int, sigma_range: float, sigma_space: float) -> Array:
    channels = levels.shape[2]
    if channels not in (1, 3):
        raise UserError(f"bilateral: an image has 1 or 3 channels, but this one has {channels}")
    padded = np.asarray(cv2.copyMakeBorder(levels, radius, radius, radius, radius, cv2.BORDER_REFLECT_101))
    padded = padded.reshape(*padded.shape[:2], channels)
    taps, powers = half_window(radius, sigma_space)
    scale = np.float32((float(LOG2_E) / (2 * sigma_range**2)) ** 0.5)
    out = np.empty(levels.shape, levels.dtype)
    round_by = ROUND if levels.dtype == np.uint8 else np.float32(0)
    bilateral_pixels(padded, taps, powers, scale, radius, out, round_by)
    return out


@lru_cache(maxsize=32)
def half_window(radius: int, sigma_space: float) -> tuple[Array, Levels]:
    """(dy, dx) of the disc's half after the centre in reading order, and `POWERS` times exp(−‖Δp‖²/2σ_s²) of each."""
    dy, dx = np.mgrid[0 : radius + 1, -radius : radius + 1].reshape(2, -1)
    square = dy**2 + dx**2
    half = (square <= radius**2) & ((dy > 0) | (dx > 0))
    taps = np.stack([dy, dx], -1)[half].astype(np.int64)
    return taps, (np.exp(-square[half] / (2 * sigma_space**2))[:, None] * POWERS).astype(np.float32)


class Bilateral(ImageModule):
    """`bilateral` on a batch N×3×H×W, float in [0, 1] or uint8; computed on the CPU, returned where it came from."""

    def __init__(self, diameter: int = 9, sigma_range: float = 75.0, sigma_space: float = 75.0) -> None:
        super().__init__(bilateral, diameter=diameter, sigma_range=sigma_range, sigma_space=sigma_space)


@dataclass(frozen=True)
class BilateralCue(Cue):
    """See `bilateral`."""

    name = "bilateral"
    suppresses = True
    summary = "smooth fine texture, keep edges"
    citation = "Tomasi and Manduchi 1998"
    equation = "w = exp(−‖Δp‖² / 2σ_s²) · exp(−(Σ_c |ΔI_c|)² / 2σ_r²);   out = Σ w I / Σ w"
    colour_only = False
    diameter: Annotated[int, "of the disc of neighbours, in pixels"] = 9
    sigma_range: Annotated[float, "how far colours may differ, in grey levels of 0–255"] = 75.0
    sigma_space: Annotated[float, "how far neighbours count, in pixels"] = 75.0

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return bilateral(image, **self.settings)
