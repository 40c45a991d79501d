"""Distances to a frozen teacher, and the contrast against its features of other images."""

from __future__ import annotations

import torch
from torch import Tensor

from cuewise.objectives.nce import extended_nce


def distance(z: Tensor, t: Tensor) -> Tensor:
    """Mean over the batch of 1 − cos(z, t), for unit-norm B×C."""
    return (1 - (z * t).sum(1)).mean()


def teacher_nce(
    z: Tensor,
    t: Tensor,
    everyone: Tensor,
    ns: Tensor | None,
    *,
    tau: float,
    alpha: tuple[float, ...] = (),
    mode: str = "in",
    offset: int = 0,
) -> Tensor:
    """InfoNCE of changed views against the teacher: −log e^{z·t/τ} / (e^{z·t/τ} + NS + Σ_j e^{z·t_j/τ}), j the other images.

    z         B×C    the student's features of the changed views
    t         B×C    the teacher's features of the same images, unchanged
    everyone  W·B×C  the teacher's features of all processes' images; row `offset` + i is t_i
    ns        B×M×C  the student's features of the negatives of each image: NS = Σ e^{α (ns·t)/τ}, or α e^{(ns·t)/τ} for
                     mode "out". They are compared with t, which has no gradient: the negatives themselves are moved
    """
    B, N = len(z), len(everyone)
    own = torch.arange(B, device=z.device)[:, None] + offset  # B×1
    others = (own + torch.arange(1, N, device=z.device)) % N  # B×(N−1): all rows but the image's own
    s_p = (z * t).sum(1)  # B
    s_n = (z @ everyone.T).gather(1, others)  # B×(N−1)
    s_ns = torch.einsum("bc,bmc->bm", t, ns) if ns is not None else None  # B×M
    return extended_nce(s_p, s_n, s_ns, tau=tau, alpha=alpha, mode=mode)
