"""Pix2Pix as a learned texture suppressor: a generator that turns an image into its diffused version in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from cuewise.cues.diffusion import check_settings, perona_malik, scaled_steps
from cuewise.data import Batch
from cuewise.encoders.heads import unit
from cuewise.encoders.unet import PatchGAN, UNet
from cuewise.errors import UserError
from cuewise.methods.method import Method, MethodSettings, Setup, Step, at_least
from cuewise.objectives.conditional_gan import adversarial_loss, discriminator_loss, psnr

FILTERS = {"anisotropic": 1, "robust": 3}  # → the conductance of the diffusion
LARGE = 128  # pixels from which patches of 70 are judged rather than of 16


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set pix2pix.*"""

    target: Annotated[str, "the filter to learn: anisotropic or robust"] = "anisotropic"
    steps: Annotated[int | None, "of the filter [20 at 224 pixels, fewer below]"] = None
    kappa: Annotated[float, "of the filter, in grey levels"] = 20.0
    weight: Annotated[float, "of the L1 distance to the target"] = 100.0
    patch: Annotated[int | None, "side that the discriminator judges: 16, 34 or 70 [16 below 128 pixels]"] = (
        None
    )
    critic_width: Annotated[int, "channels of the discriminator's first layer"] = 64


class Pix2Pix(Method):
    """A conditional GAN: generator G(x) towards the diffused x, discriminator D on (source, image) pairs.

    Both are updated from one backward pass: L_G = adversarial + weight·L1 reaches G alone, L_D reaches D alone. Their moments
    in Adam are apart, so one optimiser is two. The run's encoder is the generator (`cuewise/unet`).
    """

    name = "pix2pix"
    summary = "a generator that suppresses texture, trained towards diffused images (a GAN)"
    citation = "Isola et al. 2017; Mishra et al. 2022 (Pix2Pix-Anisotropic)"
    equation = (
        "L_G = −log σ(D(x, G(x))) + w · |G(x) − y|,   L_D = −½ [log σ(D(x, y)) + log(1 − σ(D(x, G(x))))]\n"
        "x: image, y: the diffused image, D: logits of patches"
    )
    views = {"query": "pix2pix"}
    backbone = "cuewise/unet"
    no_suppress = "its target is set by pix2pix.target"
    optim = {
        "name": "adam",
        "lr": 2e-4,
        "reference_batch": 64,
        "betas": [0.5, 0.999],
        "weight_decay": 0.0,
        "schedule": "constant",
    }
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s = self.settings
        self.target = Target(s.target, s.steps, s.kappa, self.setup.size)
        self.discriminator = PatchGAN(s.patch or patch_of(self.setup.size), s.critic_width)

    @classmethod
    def cues(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"generator": dict(settings)}

    @classmethod
    def check(cls, setup: Setup) -> None:
        s = setup.settings
        if s.target not in FILTERS:
            raise UserError(f"pix2pix.target {s.target!r}: {' or '.join(FILTERS)}")
        check_settings(1 if s.steps is None else s.steps, s.kappa, 0.1, FILTERS[s.target], "channel")
        at_least("pix2pix.steps", s.steps, 1)
        at_least("pix2pix.weight", s.weight, 0)
        at_least("pix2pix.critic_width", s.critic_width, 1)
        if s.patch is not None and s.patch not in PatchGAN.FIELDS:
            raise UserError(f"pix2pix.patch {s.patch}: 16, 34 or 70")

    @property
    def least_spread(self) -> float:
        """The innermost map is not an embedding: its spread has no lower bound."""
        return 0.0

    @property
    def net(self) -> UNet:
        """The generator G."""
        net = self.encoder.backbone
        assert isinstance(net, UNet)
        return net

    def forward(self, batch: Batch) -> Step:
        x = batch.views["query"]  # −1…1: the generator's mean and deviation are 0.5
        y = self.target(x)
        g, inner = self.net.translate(x)
        found = gan_losses(self.discriminator, x, y, g)
        loss = found["adversarial"] + self.settings.weight * found["l1"] + found["discriminator"]
        with torch.no_grad():
            found |= {
                "psnr": psnr(g, y).mean(),
                "psnr_input": psnr(x, y).mean(),
            }
        extra = {k: v.detach() for k, v in found.items()}
        return Step(loss, unit(inner.detach().mean(dim=(2, 3))), extra=extra)

    def pictures(self, batch: Batch) -> dict[str, NDArray[np.uint8]]:
        """Source, target, and what is generated over training."""
        x = batch.views["query"]
        shown = {"source": x, "target": self.target(x), "reconstruction": self.net.translate(x)[0]}
        return {name: to_pixels(image) for name, image in shown.items()}


def gan_losses(discriminator: nn.Module, x: Tensor, y: Tensor, g: Tensor) -> dict[str, Tensor]:
    """adversarial and l1, whose gradient reaches the generator alone, and discriminator, whose gradient reaches D alone."""
    held = {name: p.detach() for name, p in discriminator.named_parameters()}
    seen = functional_call(discriminator, held, (torch.cat([x, g], dim=1),))
    real = discriminator(torch.cat([x, y], dim=1))
    fake = discriminator(torch.cat([x, g.detach()], dim=1))
    return {
        "adversarial": adversarial_loss(seen),
        "l1": F.l1_loss(g, y),
        "discriminator": discriminator_loss(real, fake),
    }


@dataclass(frozen=True)
class Target:
    """The image that a generator is to make: images in −1…1, diffused. Compiled on a CPU, tensor operations elsewhere."""

    filter: str
    steps: int | None
    kappa: float
    size: int

    @classmethod
    def of(cls, cues: Mapping[str, Any], size: int) -> Target:
        """As the card of a generator records it."""
        return cls(str(cues["target"]), cues["steps"], float(cues["kappa"]), size)

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        how: dict[str, Any] = {
            "steps": scaled_steps(self.size) if self.steps is None else self.steps,
            "kappa": self.kappa,
            "option": FILTERS[self.filter],
        }
        image = ((x + 1) / 2).clamp(0, 1).float()
        if image.device.type != "cpu":
            return (perona_malik(image, **how) * 2 - 1).to(x.dtype)
        pixels = np.ascontiguousarray(image.permute(0, 2, 3, 1).numpy())
        made = torch.from_numpy(np.asarray(perona_malik(pixels, **how))).permute(0, 3, 1, 2)
        return (made * 2 - 1).to(x.dtype)


def patch_of(size: int) -> int:
    """Side of the patches that suit images of that size."""
    return 70 if size >= LARGE else 16


def to_pixels(images: Tensor) -> NDArray[np.uint8]:
    """N×3×H×W in −1…1 → N×H×W×3 uint8."""
    levels = ((images.float() + 1) * 127.5).clamp(0, 255).round()
    return levels.to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
