"""Losses of a conditional GAN: x source, y target, g generated; D logits of patches (Isola et al. 2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """½ [−log σ(D(x, y)) − log(1 − σ(D(x, g)))], the mean over patches; halved, as published, to slow D down."""
    yes = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
    no = F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
    return (yes + no) / 2


def adversarial_loss(fake: Tensor) -> Tensor:
    """−log σ(D(x, g)): the generator wants its patches taken for real ones."""
    return F.binary_cross_entropy_with_logits(fake, torch.ones_like(fake))


def psnr(a: Tensor, b: Tensor, span: float = 2.0) -> Tensor:
    """10 log₁₀(span² / mean squared error) of each image, in dB; images N×3×H×W over a range of `span`."""
    error = (a - b).square().flatten(1).mean(1)
    return 10 * torch.log10(span**2 / error.clamp_min(1e-10))
