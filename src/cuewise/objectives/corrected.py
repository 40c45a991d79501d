"""Losses for labels that may be wrong, and how often each class is taken for each other one.

Symbols: C[y, ỹ] probability that an image of class y is labelled ỹ (rows sum to 1); p[c] softmax of class c.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST = 1e-8  # probability below which its logarithm is not taken


def corrected_cross_entropy(logits: Tensor, given: Tensor, C: Tensor) -> Tensor:
    """−log Σ_c C[c, ỹ] p[c] of each image: cross-entropy after the network's answer went through C.

    logits N×K, given N (the labels ỹ), C K×K. With C the identity it is cross-entropy. C is bounded from below, so that the
    loss is finite: at most −log SMALLEST. Patrini et al. 2017, Hendrycks et al. 2018 (Eq. 2).
    """
    log_c = C.to(logits.dtype).clamp_min(SMALLEST).log()[:, given].T  # N×K: log C[·, ỹ] of each image
    return -torch.logsumexp(F.log_softmax(logits, dim=1) + log_c, dim=1)


def gold_confusion(p: Tensor, y: Tensor) -> Tensor:
    """Ĉ[y] = mean of p over the trusted images of class y. p N×K answers of a network that learned the noisy labels.

    Hendrycks et al. 2018, Algorithm 1.
    """
    classes = p.shape[1]
    sums = torch.zeros(classes, classes, dtype=torch.float64).index_add_(0, y.cpu(), p.double().cpu())
    counts = torch.bincount(y.cpu(), minlength=classes).clamp_min(1)
    return (sums / counts[:, None]).to(p.dtype)


def anchor_confusion(p: Tensor, quantile: float = 0.97) -> Tensor:
    """Ĉ[c] = p of the image that is most surely of class c, taken at a quantile of p[c] rather than at its maximum.

    Needs no trusted image. Patrini et al. 2017, Section 4.3.
    """
    order = p.argsort(dim=0)  # N×K: images from the least to the most sure, by class
    at = int(quantile * (len(p) - 1))
    return p[order[at]]


def confusion_of(clean: Tensor, given: Tensor, classes: int) -> Tensor:
    """C[y, ỹ]: share of the images of class y that are labelled ỹ; a class without images has the row of no error."""
    counts = torch.zeros(classes, classes, dtype=torch.float64)
    counts.index_put_((clean, given), torch.ones(len(clean), dtype=torch.float64), accumulate=True)
    total = counts.sum(1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp_min(1), torch.eye(classes, dtype=torch.float64))
