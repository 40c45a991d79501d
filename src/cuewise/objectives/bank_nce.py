"""Noise-contrastive estimation against a memory bank: is this entry the image's own, or noise?"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.objectives.nce import at_least_single


def bank_nce(s_p: Tensor, s_n: Tensor, *, tau: float, images: int, log_z: Tensor) -> Tensor:
    """Mean over the batch of −log h(s_p) − Σ log(1 − h(s_n)),   h = P/(P + m/n),   P = e^{s/τ}/Z.

    s_p     B    similarity to the image's own entry
    s_n     B×m  similarities to m entries drawn uniformly from the n = `images` of the bank (noise of density 1/n)
    log_z   ln Z, a constant: see `log_partition`

    Wu et al. 2018, Unsupervised Feature Learning via Non-Parametric Instance Discrimination, Eq. 4–7.
    """
    noise = math.log(s_n.shape[1] / images)  # ln(m·Pₙ)
    own = at_least_single(s_p) / tau - log_z - noise  # B: log odds of "own"
    other = at_least_single(s_n) / tau - log_z - noise  # B×m
    return (F.softplus(-own) + F.softplus(other).sum(1)).mean()


def log_partition(s: Tensor, *, tau: float, images: int) -> Tensor:
    """B: for each query ln of n · mean over its similarities (B×j) of e^{s/τ}, the estimate of its partition function."""
    return torch.logsumexp(at_least_single(s) / tau, dim=1) + math.log(images / s.shape[1])
