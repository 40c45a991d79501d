"""Colour: take it away (grey) or turn it round the colour circle (hue), leaving shape and shading."""

from __future__ import annotations

import cv2
import numpy as np
from torch import Tensor, nn
from torchvision.transforms.v2.functional import adjust_hue

from cuewise.cues.levels import (
    Array,
    Picture,
    as_colour,
    from_levels,
    tensor_from_levels,
    tensor_to_levels,
    to_levels,
)
from cuewise.cues.registry import Image, register

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601


def grey(image: Picture) -> Picture:
    """0.299 R + 0.587 G + 0.114 B in all three channels; array …×H×W×3 or tensor …×3×H×W, uint8 or float in [0, 1]."""
    if isinstance(image, Tensor):
        levels = tensor_to_levels(image)
        luma = (levels * levels.new_tensor(LUMA).view(3, 1, 1)).sum(-3, keepdim=True)
        return tensor_from_levels(luma.expand(levels.shape).contiguous(), image)
    luma = to_levels(image) @ np.array(LUMA, np.float32)
    return from_levels(np.repeat(luma[..., None], 3, -1), image)


def hue_shift(image: Picture, *, turn: float) -> Picture:
    """Turn the hue by `turn` of the circle (HSV; ½ gives the opposite colours); value and saturation stay.

    image: array H×W×3 or tensor …×3×H×W, uint8 or float in [0, 1].
    """
    turn = (turn + 0.5) % 1.0 - 0.5
    if isinstance(image, Tensor):
        levels = tensor_to_levels(image)
        return tensor_from_levels(255 * adjust_hue((levels / 255).clamp(0, 1), turn), image)
    return _turn(as_colour(image), turn)


def _turn(image: Array, turn: float) -> Array:
    hsv = cv2.cvtColor(to_levels(image) / np.float32(255), cv2.COLOR_RGB2HSV)  # hue in degrees
    hsv[..., 0] = (hsv[..., 0] + 360 * turn) % 360
    return from_levels(np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.float32) * 255, image)


class Grey(nn.Module):
    """`grey` on a batch N×3×H×W."""

    def forward(self, batch: Tensor) -> Tensor:
        return grey(batch)


class HueShift(nn.Module):
    """`hue_shift` on a batch N×3×H×W by one turn for all."""

    def __init__(self, turn: float) -> None:
        super().__init__()
        self.turn = turn

    def forward(self, batch: Tensor) -> Tensor:
        return hue_shift(batch, turn=self.turn)


@register("grey", "remove colour")
def grey_cue(image: Image, rng: np.random.Generator) -> Image:
    """See `grey`."""
    return grey(image)


@register("hue", "turn all colours round the colour circle", turn=None)
def hue_cue(image: Image, rng: np.random.Generator, *, turn: float | None = None) -> Image:
    """turn: part of the circle, or None to draw it from U(0.1, 0.9), a change one sees."""
    return hue_shift(image, turn=float(rng.uniform(0.1, 0.9)) if turn is None else turn)
