"""Anisotropic diffusion: smooths texture inside regions and keeps the edges between them.

Perona & Malik 1990 (options 1 and 2); Black, Sapiro, Marimont & Heeger 1998 (option 3, "robust").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.diffusion_coupled import diffuse_coupled
from cuewise.cues.diffusion_kernel import GENTLE, GENTLE_KAPPA, constant, diffuse_planes
from cuewise.cues.forms import ImageModule, Pixels, any_form
from cuewise.cues.levels import Levels, Picture, from_levels, to_levels
from cuewise.errors import UserError

Mode = Literal["channel", "vector", "medpy3d"]
MODES = ("channel", "vector", "medpy3d")
Steps = int | tuple[int, int] | None


@any_form(tensors=True)
def perona_malik(
    image: Picture,
    *,
    steps: int = 20,
    kappa: float = 20.0,
    gamma: float = 0.1,
    option: int = 1,
    mode: Mode = "channel",
) -> Picture:
    """I ← I + γ Σ_a div_a(g(δ_a)·δ_a), `steps` times; δ_a is the difference along axis a, zero at the border.

    image: uint8 or float in [0, 1]; array H×W, H×W×C or N×H×W×C, or tensor N×C×H×W (any device, differentiable).
    kappa is in grey levels of 0–255 for every kind of image. Conductance g by option: 1 exp(−(δ/κ)²), 2 1/(1+(δ/κ)²),
    3 Tukey's ½(1−(δ/κ√2)²)², zero beyond κ√2. mode: "channel" smooths each channel separately, "vector" shares one g of
    δ² summed over channels, "medpy3d" treats colour as a third axis of space (what MedPy does to an H×W×3 array).
    """
    check_settings(steps, kappa, gamma, option, mode)
    if isinstance(image, Tensor):
        return from_levels(diffuse_tensor(to_levels(image), steps, kappa, gamma, option, mode), image)
    return from_levels(diffuse(to_levels(image), steps, kappa, gamma, option, mode), image)


def robust_diffusion(image: Any, **settings: Any) -> Any:
    """`perona_malik` with Tukey's biweight (option 3): no flux at all across an edge above κ√2."""
    return perona_malik(image, option=3, **settings)


def diffuse(
    levels: Levels, steps: int, kappa: float, gamma: float, option: int, mode: Mode = "channel"
) -> Levels:
    """The filter on float32 grey levels 0–255 of shape H×W, H×W×C or N×H×W×C, without rounding."""
    images = np.ascontiguousarray(levels).reshape(
        (-1, *levels.shape[-3:]) if levels.ndim > 2 else (1, *levels.shape, 1)
    )
    out = np.empty(images.shape, np.float32)
    g = np.float32(gamma)
    if mode == "channel":
        form = GENTLE if option == 1 and kappa >= GENTLE_KAPPA else option
        diffuse_planes(images, out, steps, g, kappa, form)
    else:
        k = constant(kappa, option)
        for i in range(len(images)):
            diffuse_coupled(images[i], out[i], steps, g, k, option, mode == "vector")
    return out.reshape(levels.shape)


def diffuse_tensor(levels: Tensor, steps: int, kappa: float, gamma: float, option: int, mode: Mode) -> Tensor:
    """The same equation on a tensor …×C×H×W of grey levels, for batches and accelerators."""
    axes = (-1, -2, -3) if mode == "medpy3d" else (-1, -2)
    for _ in range(steps):
        change = torch.zeros_like(levels)
        for axis in axes:
            length = levels.shape[axis]
            delta = levels.narrow(axis, 1, length - 1) - levels.narrow(axis, 0, length - 1)
            square = delta.square().sum(-3, keepdim=True) if mode == "vector" else delta.square()
            flux = conductance(square / kappa**2, option) * delta
            change.narrow(axis, 0, length - 1).add_(flux)
            change.narrow(axis, 1, length - 1).sub_(flux)
        levels = levels + gamma * change
    return levels


def conductance(square: Tensor, option: int) -> Tensor:
    if option == 1:
        return torch.exp(-square)
    if option == 2:
        return 1 / (1 + square)
    return (1 - square / 2).clamp(min=0).square() / 2


def check_settings(steps: int, kappa: float, gamma: float, option: int, mode: str) -> None:
    """Refuse what cannot converge, and say what to change."""
    if mode not in MODES:
        raise UserError(f"diffusion: no mode {mode!r}; there are: {', '.join(MODES)}")
    if option not in (1, 2, 3):
        raise UserError(f"diffusion: no option {option!r}; 1 exponential, 2 rational, 3 Tukey")
    limit = 1 / 6 if mode == "medpy3d" else 0.25
    if not 0 < gamma <= limit:
        raise UserError(
            f"diffusion: gamma {gamma:g} is not in (0, {limit:.3g}], beyond which it oscillates; lower it"
        )
    if not kappa > 0 or steps < 0:
        raise UserError(f"diffusion: kappa {kappa:g} must be above 0 and steps {steps} at least 0")


def scaled_steps(side: int, steps: int = 20) -> int:
    """How many steps suit an image of that side as `steps` do at 224 px: steps·(side/224)^1.5, at least 2.

    In flat regions n steps blur by σ = √(2γn); σ in proportion to the side would ask for the power 2, but differences
    between the pixels of a small image are larger, and κ lets less through: 3 steps at 64 px.
    """
    return max(min(2, steps), round(steps * min(1.0, side / 224) ** 1.5))


class PeronaMalik(ImageModule):
    """`perona_malik` on a batch N×C×H×W, float in [0, 1] or uint8, on any device."""

    def __init__(
        self,
        steps: int = 20,
        kappa: float = 20.0,
        gamma: float = 0.1,
        option: int = 1,
        mode: Mode = "channel",
    ) -> None:
        super().__init__(perona_malik, steps=steps, kappa=kappa, gamma=gamma, option=option, mode=mode)


@dataclass(frozen=True)
class Diffusion(Cue):
    """What `anisotropic` and `robust` share: how many steps, and how large they are."""

    colour_only = False
    steps: Annotated[Steps, "a number, or low and high to draw from [20 at 224 pixels, fewer below]"] = None
    kappa: Annotated[float, "difference above which an edge is kept, in grey levels"] = 20.0
    gamma: Annotated[float, "size of a step"] = 0.1
    mode: Annotated[Mode, "channel, vector or medpy3d"] = "channel"

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        if self.steps is None:
            return {"steps": scaled_steps(min(height, width))}
        if isinstance(self.steps, int):
            return {"steps": self.steps}
        return {"steps": int(rng.integers(self.steps[0], self.steps[1] + 1))}

    def draw_view(self, u: float, height: int, width: int) -> Drawn:
        """10 to 20 steps at 224 px, fewer below; steps that were asked for are taken as they are."""
        if self.steps is not None:
            return super().draw_view(u, height, width)
        return {"steps": scaled_steps(min(height, width), 10 + int(u * 11))}


@dataclass(frozen=True)
class Anisotropic(Diffusion):
    """See `perona_malik`."""

    name = "anisotropic"
    suppresses = True
    summary = "smooth texture, keep edges (Perona–Malik diffusion)"
    citation = "Perona and Malik 1990; against texture: Mishra et al. 2020"
    equation = "I ← I + γ Σ_a div_a(g(δ_a)·δ_a), `steps` times;   g(δ) = exp(−(δ/κ)²)"
    option: Annotated[int, "conductance: 1 exponential, 2 rational, 3 Tukey"] = 1

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return perona_malik(image, **{**self.settings, **drawn})


@dataclass(frozen=True)
class Robust(Diffusion):
    """See `robust_diffusion`."""

    name = "robust"
    suppresses = True
    summary = "smooth texture, stop at edges altogether (Tukey diffusion)"
    citation = "Black, Sapiro, Marimont and Heeger 1998"
    equation = "I ← I + γ Σ_a div_a(g(δ_a)·δ_a), `steps` times;   g(δ) = ½ (1 − (δ/κ√2)²)², 0 beyond κ√2"
    kappa: Annotated[float, "scale of the differences that are smoothed, in grey levels"] = 20.0

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return robust_diffusion(image, **{**self.settings, **drawn})
