"""Value ranges: operators work on grey levels 0–255; conversion from and to uint8 or float in [0, 1].

Published thresholds (κ = 20, σ = 75, …) are grey levels. On an image in [0, 1] they silently do nothing or
everything, so every operator converts here instead of asking the user to divide by 255.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.errors import UserError

Array = NDArray[Any]
Levels = NDArray[np.float32]
Picture = TypeVar("Picture", NDArray[Any], Tensor)  # what goes in comes out


def to_levels(image: Picture) -> Picture:
    """uint8 or float in [0, 1] → grey levels 0–255.

    array H×W, H×W×C or N×H×W×C → a float32 copy; tensor …×H×W → float on the same device.
    """
    if isinstance(image, Tensor):
        if image.dtype == torch.uint8:
            return image.float()
        if not image.is_floating_point():
            raise UserError(
                f"a batch is uint8 or float in [0, 1], but this one is {image.dtype}; convert it first"
            )
        _check_range(float(image.detach().min()), float(image.detach().max()))
        return image * 255
    if image.ndim not in (2, 3, 4) or 0 in image.shape:
        raise UserError(
            f"an image is H×W, H×W×C or N×H×W×C, but this one has shape {image.shape}; reshape it first"
        )
    if image.dtype == np.uint8:
        return image.astype(np.float32)
    if image.dtype.kind != "f":
        raise UserError(
            f"an image is uint8 or float in [0, 1], but this one is {image.dtype}; convert it first"
        )
    _check_range(float(image.min()), float(image.max()))
    return image.astype(np.float32) * np.float32(255)


def from_levels(levels: Picture, like: Picture) -> Picture:
    """Grey levels back to the type and range of `like`: uint8 is rounded and clipped, float divided by 255."""
    if isinstance(levels, Tensor):
        return levels.round().clamp(0, 255).to(torch.uint8) if like.dtype == torch.uint8 else levels / 255
    if like.dtype == np.uint8:
        return np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(levels / np.float32(255)).astype(like.dtype)


def _check_range(low: float, high: float) -> None:
    # A little beyond [0, 1] comes from resampling; 0–255 in float is a mistake worth stopping.
    if not (low >= -0.5 and high <= 1.5):
        raise UserError(
            f"a float image must lie in [0, 1], but this one runs from {low:g} to {high:g}; "
            "divide by 255, undo the normalisation, or pass uint8"
        )


def to_bytes(image: Array) -> NDArray[np.uint8]:
    """The image as a new uint8 array, for operators that are defined on 256 grey levels only."""
    if image.dtype == np.uint8:
        return image.copy()
    return np.clip(np.rint(to_levels(image)), 0, 255).astype(np.uint8)


def as_colour(image: Array) -> Array:
    """The image itself if it is H×W×3, or an error that says so."""
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise UserError(f"this operator needs a colour image H×W×3, but this one has shape {image.shape}")
    return image
