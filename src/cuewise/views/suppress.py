"""Texture suppression of a view: the whole image is filtered before its crop is taken."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.bilateral import bilateral
from cuewise.cues.blur import gaussian_blur
from cuewise.cues.cartoon import cartoon
from cuewise.cues.diffusion import perona_malik, robust_diffusion, scaled_steps
from cuewise.views.params import Suppress

Pixels = NDArray[np.uint8]
SHARE = 0.5  # of the views; the others are blurred half of the time: 0.5 / 0.25 / 0.25
STEPS = (10, 20)  # of diffusion at 224 pixels and above, both inclusive
VARIANCE = (10.0, 20.0)  # of the Gaussian at 224 pixels

# kind → what the drawn amount does
FILTERS: dict[str, Callable[[Pixels, float], Pixels]] = {
    "anisotropic": lambda image, steps: perona_malik(image, steps=round(steps)),
    "robust": lambda image, steps: robust_diffusion(image, steps=round(steps)),
    "bilateral": lambda image, _: bilateral(image),
    "cartoon": lambda image, _: cartoon(image),
    "gaussian": lambda image, sigma: gaussian_blur(image, sigma=sigma),
}


def draw_suppress(kind: str, u: float, height: int, width: int) -> Suppress:
    """The amount for an image of that size from a uniform number: steps of diffusion, σ of the Gaussian, else nothing."""
    side = min(height, width)
    if kind in ("anisotropic", "robust"):
        steps = STEPS[0] + int(u * (STEPS[1] - STEPS[0] + 1))
        return Suppress(kind, scaled_steps(side, steps))
    if kind == "gaussian":
        sigma = math.sqrt(VARIANCE[0] + u * (VARIANCE[1] - VARIANCE[0]))
        return Suppress(kind, sigma * min(1.0, side / 224))
    return Suppress(kind)


def suppressed(image: Pixels, params: Suppress) -> Pixels:
    """The image without (much of) its texture."""
    return np.ascontiguousarray(FILTERS[params.kind](image, params.amount))
