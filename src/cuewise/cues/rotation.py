"""Rotation by quarter turns: exact, every pixel keeps its value."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from cuewise.cues.levels import Picture
from cuewise.cues.registry import Image, register


def rotate(image: Picture, *, quarters: int) -> Picture:
    """Turn by quarters·90° counter-clockwise: array H×W, H×W×C or N×H×W×C, or tensor …×H×W, of any type."""
    if isinstance(image, Tensor):
        return torch.rot90(image, quarters, (-2, -1))
    axes = (1, 2) if image.ndim == 4 else (0, 1)
    return np.ascontiguousarray(np.rot90(image, quarters, axes))


class Rotate(nn.Module):
    """`rotate` on a batch N×C×H×W."""

    def __init__(self, quarters: int) -> None:
        super().__init__()
        self.quarters = quarters

    def forward(self, batch: Tensor) -> Tensor:
        return rotate(batch, quarters=self.quarters)


@register("rotation", "turn the image by quarter turns", quarters=None)
def rotation_cue(image: Image, rng: np.random.Generator, *, quarters: int | None = None) -> Image:
    """quarters: 0…3, or None to draw 1…3 (only 2 where the image is not square, which keeps its shape)."""
    square = image.shape[0] == image.shape[1]
    drawn = (int(rng.integers(1, 4)) if square else 2) if quarters is None else quarters
    return rotate(image, quarters=drawn)
