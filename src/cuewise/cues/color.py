"""Colour: remove it (grey) or rotate it on the colour circle (hue); shape and shading stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
from torch import Tensor
from torchvision.transforms.v2.functional import adjust_hue

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Picture, as_colour, from_levels, to_levels

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601


@any_form(tensors=True)
def grey(image: Picture) -> Picture:
    """0.299 R + 0.587 G + 0.114 B in all three channels; array …×H×W×3 or tensor …×3×H×W, uint8 or float in [0, 1]."""
    if isinstance(image, Tensor):
        levels = to_levels(image)
        luma = (levels * levels.new_tensor(LUMA).view(3, 1, 1)).sum(-3, keepdim=True)
        return from_levels(luma.expand(levels.shape).contiguous(), image)
    luma = to_levels(image) @ np.array(LUMA, np.float32)
    return from_levels(np.repeat(luma[..., None], 3, -1), image)


@any_form(tensors=True)
def hue_shift(image: Picture, *, turn: float) -> Picture:
    """Rotate the hue by `turn` of the circle (HSV; ½ gives the opposite colours); value and saturation stay.

    image: array H×W×3 or tensor …×3×H×W, uint8 or float in [0, 1].
    """
    turn = (turn + 0.5) % 1.0 - 0.5
    if isinstance(image, Tensor):
        levels = to_levels(image)
        return from_levels(255 * adjust_hue((levels / 255).clamp(0, 1), turn), image)
    hsv = cv2.cvtColor(to_levels(as_colour(image)) / np.float32(255), cv2.COLOR_RGB2HSV)  # hue in degrees
    hsv[..., 0] = (hsv[..., 0] + 360 * turn) % 360
    return from_levels(np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.float32) * 255, image)


class Grey(ImageModule):
    """`grey` on a batch N×3×H×W."""

    def __init__(self) -> None:
        super().__init__(grey)


class HueShift(ImageModule):
    """`hue_shift` on a batch N×3×H×W by one turn for all."""

    def __init__(self, turn: float) -> None:
        super().__init__(hue_shift, turn=turn)


@dataclass(frozen=True)
class GreyCue(Cue):
    """See `grey`."""

    name = "grey"
    summary = "remove colour"
    equation = "out = 0.299 R + 0.587 G + 0.114 B on all channels"

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return grey(image)


@dataclass(frozen=True)
class Hue(Cue):
    """See `hue_shift`."""

    name = "hue"
    summary = "rotate all colours on the colour circle"
    equation = "h ← h + turn (mod 1) in HSV"
    turn: Annotated[float | None, "part of the circle [drawn from 0.1 to 0.9]"] = None

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        return {"turn": float(rng.uniform(0.1, 0.9)) if self.turn is None else self.turn}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return hue_shift(image, turn=drawn["turn"])
