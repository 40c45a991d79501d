"""Debiased contrastive loss, and its form with negatives weighed by how hard they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cuewise.objectives.nce import at_least_single, weigh_negatives


def debiased_nce(
    s_p: Tensor,
    s_n: Tensor,
    s_ns: Tensor | None = None,
    *,
    tau: float,
    prior: float = 0.1,
    beta: float = 0.0,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
) -> Tensor:
    """Mean over the batch of −log e^{s_p/τ} / (e^{s_p/τ} + G + NS).

    G = max( (Σ_n w_n e^{s_n/τ} − τ⁺ N e^{s_p/τ}) / (1 − τ⁺),  N e^{−1/τ} ),   w_n = e^{β s_n/τ} / mean of them

    s_p, s_n, s_ns  as in `extended_nce`: B, B×N, B×M
    prior           τ⁺: how often a negative is of the query's own class
    beta            β: 0 weighs all alike (debiased), more favours hard ones
    NS              the query's own negatives, as in `extended_nce`: no sample of the data, so neither corrected nor
                    reweighed

    With τ⁺ = β = 0 it is `extended_nce`. Gradient flows through the weights and the correction.
    Chuang et al. 2020, Eq. 8; Robinson et al. 2021 (hard negative samples), Eq. 4.
    """
    s_p, s_n = at_least_single(s_p), at_least_single(s_n)
    n = s_n.shape[1]
    # everything over e^{1/τ}, the largest there can be: no overflow, whatever τ
    pos, neg = torch.exp((s_p - 1) / tau), torch.exp((s_n - 1) / tau)  # B, B×N
    weight = torch.softmax(beta * s_n / tau, dim=1) * n if beta else torch.ones_like(s_n)
    corrected = ((weight * neg).sum(1) - prior * n * pos) / (1 - prior)
    mass = corrected.clamp_min(max(n * math.exp(-2 / tau), torch.finfo(s_n.dtype).tiny))
    terms = [s_p / tau, mass.log() + 1 / tau]
    if s_ns is not None and s_ns.shape[1]:
        terms += list(weigh_negatives(at_least_single(s_ns), tau, alpha, mode).unbind(1))
    return (torch.logsumexp(torch.stack(terms, dim=1), dim=1) - s_p / tau).mean()
