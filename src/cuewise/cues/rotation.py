"""Rotation by quarter turns: exact, every pixel keeps its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Picture


@any_form(tensors=True)
def rotate(image: Picture, *, quarters: int) -> Picture:
    """Turn by quarters·90° counter-clockwise: array H×W, H×W×C or N×H×W×C, or tensor …×H×W, of any type."""
    if isinstance(image, Tensor):
        return torch.rot90(image, quarters, (-2, -1))
    axes = (1, 2) if image.ndim == 4 else (0, 1)
    return np.ascontiguousarray(np.rot90(image, quarters, axes))


class Rotate(ImageModule):
    """`rotate` on a batch N×C×H×W."""

    def __init__(self, quarters: int) -> None:
        super().__init__(rotate, quarters=quarters)


@dataclass(frozen=True)
class Rotation(Cue):
    """See `rotate`."""

    name = "rotation"
    summary = "rotate the image by quarter turns"
    moves = True
    equation = "out = image turned by k · 90°"
    colour_only = False
    quarters: Annotated[int | None, "0 to 3 [drawn from 1 to 3; 2 where the image is not square]"] = None

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        if self.quarters is not None:
            return {"quarters": self.quarters}
        return {"quarters": int(rng.integers(1, 4)) if height == width else 2}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return rotate(image, quarters=drawn["quarters"])
