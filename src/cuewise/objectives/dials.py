"""Label-free readings of an embedding: spread, effective rank, alignment, uniformity."""

from __future__ import annotations

import torch
from torch import Tensor


def feature_std(z: Tensor) -> Tensor:
    """√D · mean over dimensions of the standard deviation of unit-norm z (B×D): 1 when spread evenly, 0 when collapsed."""
    return z.std(dim=0).mean() * z.shape[1] ** 0.5


def effective_rank(z: Tensor) -> Tensor:
    """exp of the entropy of the normalised singular values of z (B×D): how many directions carry it.

    Roy & Vetterli; Garrido et al., RankMe, Eq. 1.
    """
    s = torch.linalg.svdvals(z.float())
    p = s / s.sum().clamp_min(1e-12)
    return torch.exp(-(p * torch.log(p.clamp_min(1e-12))).sum())


def alignment(a: Tensor, b: Tensor) -> Tensor:
    """Mean squared distance of positive pairs (B×D each). Wang & Isola, Eq. 1 with exponent 2."""
    return (a - b).square().sum(1).mean()


def uniformity(z: Tensor) -> Tensor:
    """log of the mean Gaussian potential e^{−2‖zᵢ−zⱼ‖²} over pairs; lower is more uniform. Wang & Isola, Eq. 2."""
    return torch.pdist(z.float()).square().mul(-2).exp().mean().log()
