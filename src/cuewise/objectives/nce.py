"""InfoNCE extended by α-weighted non-semantic negatives (L_in and L_out)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

MODES = ("in", "out")


def at_least_single(x: Tensor) -> Tensor:
    """float32, or float64 where it is that already: similarities over τ overflow and blur in half precision."""
    return x if x.dtype == torch.float64 else x.float()


def weigh_negatives(s_ns: Tensor, tau: float, alpha: float | Sequence[float], mode: str) -> Tensor:
    """Logits of the non-semantic negatives: α·s/τ inside the exponential, or s/τ + ln α outside it.

    s_ns   B×M similarities of each query to its own M negatives
    alpha  one weight, or one for each of the M columns; α = 0 means "no negative" (not e⁰ = 1): drop the column first
    """
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, not one of {MODES}")
    weights = [float(alpha)] * s_ns.shape[1] if isinstance(alpha, int | float) else [float(a) for a in alpha]
    if len(weights) != s_ns.shape[1] or min(weights, default=1.0) <= 0:
        raise ValueError(f"{s_ns.shape[1]} negatives need as many weights above 0, got {weights}")
    if mode == "in":
        return s_ns * (s_ns.new_tensor(weights) / tau)
    return s_ns / tau + s_ns.new_tensor([math.log(a) for a in weights])


def own_part(ns: Tensor, everyone: Tensor, share: float) -> Tensor:
    """Negatives less `share` of the mean negative: what is left distinguishes one image's negative from another's.

    A network can escape its negatives by one direction that all of them have in common (their seams, their batch
    statistics) and keep the texture. Similarity to the remainder, q·(ns_i − share·mean_j ns_j), cannot be lowered so.

    ns        B×M×C  this process's negatives
    everyone  N×M×C  the negatives of the whole batch
    share     0 (the published form) to 1
    """
    return ns - share * everyone.mean(0) if share else ns


def nce_logits(
    s_p: Tensor,
    s_n: Tensor,
    s_ns: Tensor | None = None,
    *,
    tau: float,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
) -> Tensor:
    """B×(1+N+M) logits, the positive in column 0.

    s_p   B    similarity of each query to its positive
    s_n   B×N  similarities to ordinary negatives
    s_ns  B×M  similarities to the query's own non-semantic negatives, or None
    """
    columns = [s_p.unsqueeze(1) / tau, s_n / tau]  # B×1, B×N
    if s_ns is not None and s_ns.shape[1]:
        columns.append(weigh_negatives(s_ns, tau, alpha, mode))  # B×M
    return torch.cat(columns, dim=1)


def extended_nce(
    s_p: Tensor,
    s_n: Tensor,
    s_ns: Tensor | None = None,
    *,
    tau: float,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
) -> Tensor:
    """Mean over the batch of −log e^{s_p/τ} / (e^{s_p/τ} + NS + Σ e^{s_n/τ}).

    NS = Σ e^{α s_ns/τ} (mode "in", the default) or Σ α e^{s_ns/τ} (mode "out"); without negatives, ordinary InfoNCE.

    Ge et al., Robust Contrastive Learning Using Negative Samples with Diminished Semantics, Eq. 1.
    """
    logits = nce_logits(s_p, s_n, s_ns, tau=tau, alpha=alpha, mode=mode)
    target = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    return F.cross_entropy(at_least_single(logits), target)
