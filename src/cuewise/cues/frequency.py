"""Frequency mask: keeps the low spatial frequencies of an image and removes the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Picture, from_levels, to_levels
from cuewise.errors import UserError

Shape = Literal["square", "circle"]


@any_form(tensors=True)
def lowpass(image: Picture, *, keep: float = 0.25, shape: Shape = "square") -> Picture:
    """Keep the centred r_y×r_x part of each channel's discrete Fourier transform, r = round(keep·side); zero the rest.

    image: uint8 or float in [0, 1]; array H×W, H×W×C or N×H×W×C, or tensor …×H×W. keep ∈ [0, 1]; 1 is the identity (for
    the square), 0 leaves the mean. uint8 is rounded and clipped, float only clipped to [0, 1].
    """
    if not 0 <= keep <= 1 or shape not in ("square", "circle"):
        raise UserError(f"lowpass: keep {keep!r} must be in [0, 1] and shape {shape!r} square or circle")
    if isinstance(image, Tensor):
        batch = to_levels(image).double()
        size = (batch.shape[-2], batch.shape[-1])
        kept = torch.from_numpy(frequency_mask(*size, keep, shape)).to(batch.device)
        low = torch.fft.irfft2(torch.fft.rfft2(batch) * kept, s=size).clamp(0, 255)
        return from_levels(low if image.dtype == torch.uint8 else low.to(image.dtype), image)
    levels = to_levels(image).astype(np.float64)
    axes = (0, 1) if levels.ndim < 4 else (1, 2)
    size = (levels.shape[axes[0]], levels.shape[axes[1]])
    mask = frequency_mask(*size, keep, shape)
    mask = mask.reshape(mask.shape + (1,) * (levels.ndim > 2))
    back = np.fft.irfft2(np.fft.rfft2(levels, axes=axes) * mask, s=size, axes=axes)
    return from_levels(np.clip(back, 0, 255).astype(np.float32), image)


def frequency_mask(height: int, width: int, keep: float, shape: Shape = "square") -> NDArray[np.bool_]:
    """H×(W//2 + 1) mask of the half spectrum: 2|f| ≤ r on both axes, so f and −f stay or go together at every size."""
    y = 2 * np.abs(np.fft.fftfreq(height, 1 / height))[:, None]
    x = 2 * np.abs(np.fft.rfftfreq(width, 1 / width))[None]
    rows, columns = round(keep * height), round(keep * width)
    if shape == "circle":
        return np.asarray((y / max(rows, 1)) ** 2 + (x / max(columns, 1)) ** 2 <= 1)
    return np.asarray((y <= rows) & (x <= columns))


class Lowpass(ImageModule):
    """`lowpass` on a batch N×C×H×W, float in [0, 1] or uint8, on any device."""

    def __init__(self, keep: float = 0.25, shape: Shape = "square") -> None:
        super().__init__(lowpass, keep=keep, shape=shape)


@dataclass(frozen=True)
class LowpassCue(Cue):
    """See `lowpass`."""

    name = "lowpass"
    summary = "keep low spatial frequencies only"
    equation = "out = F⁻¹(F(image) where 2|f| ≤ round(keep · side), else 0), F the discrete Fourier transform"
    colour_only = False
    keep: Annotated[float, "part of the frequencies that is kept, 0 to 1"] = 0.25
    shape: Annotated[Shape, "of the kept part: square or circle"] = "square"

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return lowpass(image, keep=self.keep, shape=self.shape)
