"""Gaussian blur: removes fine detail, texture and edges alike; the isotropic baseline to diffusion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Array, Picture, from_levels, to_levels
from cuewise.errors import UserError


@any_form(tensors=True)
def gaussian_blur(image: Picture, *, sigma: float) -> Picture:
    """Convolve with exp(−‖p‖²/2σ²), cut at 4σ, border mirrored.

    image: uint8 or float in [0, 1]; array H×W, H×W×C or N×H×W×C, or tensor N×C×H×W. sigma in pixels; 0 is the identity.
    """
    if sigma < 0:
        raise UserError(f"gaussian: sigma {sigma:g} must be at least 0")
    if isinstance(image, Tensor):
        return _blur_tensor(image, sigma)
    if sigma == 0:
        return image.copy()
    if image.ndim == 4:
        return np.stack([gaussian_blur(one, sigma=sigma) for one in image])
    kernel = gaussian_kernel(sigma)
    blurred = cv2.sepFilter2D(to_levels(image), -1, kernel, kernel, borderType=cv2.BORDER_REFLECT)
    return from_levels(np.asarray(blurred, np.float32).reshape(image.shape), image)


def gaussian_kernel(sigma: float) -> Array:
    """Sampled Gaussian of 2⌈4σ⌉ + 1 taps that sum to one."""
    radius = math.ceil(4 * sigma)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return np.asarray(taps / taps.sum(), dtype=np.float32)


def _blur_tensor(batch: Tensor, sigma: float) -> Tensor:
    if sigma == 0:
        return batch.clone()
    levels = to_levels(batch)
    taps = torch.as_tensor(gaussian_kernel(sigma)).to(levels)
    channels = levels.shape[-3]
    for axis in (-1, -2):
        index = _mirrored(levels.shape[axis], len(taps) // 2, levels.device)
        shape = [channels, 1, 1, 1]
        shape[axis] = len(taps)
        weights = taps.view(shape[1:]).expand(shape)
        levels = F.conv2d(levels.index_select(axis, index), weights, groups=channels)
    return from_levels(levels, batch)


def _mirrored(length: int, radius: int, device: torch.device) -> Tensor:
    """… 1 0 | 0 1 2 … n−1 | n−1 n−2 …, as often as the radius needs."""
    at = torch.arange(-radius, length + radius, device=device) % (2 * length)
    return torch.minimum(at, 2 * length - 1 - at)


class GaussianBlur(ImageModule):
    """`gaussian_blur` on a batch N×C×H×W, float in [0, 1] or uint8, on any device."""

    def __init__(self, sigma: float) -> None:
        super().__init__(gaussian_blur, sigma=sigma)


def draw_sigma(rng: np.random.Generator, side: int, form: str) -> float:
    """σ in pixels: "ssl" U(0.1, 2.0), half the time 0; "supervised" √U(10, 20) at 224 px, in proportion below."""
    if form == "ssl":
        return float(rng.uniform(0.1, 2.0)) if rng.random() < 0.5 else 0.0
    if form == "supervised":
        return math.sqrt(rng.uniform(10, 20)) * min(1.0, side / 224)
    raise UserError(f"gaussian: no form {form!r}; there are: ssl, supervised")


@dataclass(frozen=True)
class Gaussian(Cue):
    """See `gaussian_blur` and `draw_sigma`."""

    name = "gaussian"
    suppresses = True
    summary = "blur texture and edges alike"
    citation = "Gaussian blur; as the isotropic baseline: Mishra et al. 2020"
    equation = "out = image ∗ exp(−‖p‖² / 2σ²)"
    colour_only = False
    sigma: Annotated[float | None, "width in pixels [drawn by form]"] = None
    form: Annotated[str, "how sigma is drawn: supervised, ssl"] = "supervised"

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        drawn = draw_sigma(rng, min(height, width), self.form) if self.sigma is None else self.sigma
        return {"sigma": drawn}

    def draw_view(self, u: float, height: int, width: int) -> Drawn:
        """σ = √(10 + 10u) at 224 px, in proportion below, unless another form or a width was asked for."""
        if self.sigma is not None or self.form != "supervised":
            return super().draw_view(u, height, width)
        return {"sigma": math.sqrt(10.0 + u * 10.0) * min(1.0, min(height, width) / 224)}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return gaussian_blur(image, sigma=drawn["sigma"])
