"""Weighted k-nearest-neighbour voting on unit-norm features."""

from __future__ import annotations

import torch
from torch import Tensor


def nearest(queries: Tensor, bank: Tensor, k: int, chunk: int = 1024) -> tuple[Tensor, Tensor]:
    """Similarities Q×k of the k nearest bank entries, largest first, and their places."""
    k = min(k, len(bank))
    found = [(queries[i : i + chunk] @ bank.T).topk(k, dim=1) for i in range(0, len(queries), chunk)]
    if not found:
        return queries.new_zeros(0, k), torch.zeros(0, k, dtype=torch.long)
    return torch.cat([s for s, _ in found]), torch.cat([i for _, i in found])


def knn_votes(
    queries: Tensor,
    bank: Tensor,
    labels: Tensor,
    classes: int,
    *,
    k: int = 20,
    tau: float = 0.07,
    leave_one_out: bool = False,
    chunk: int = 1024,
) -> Tensor:
    """Q×C votes: each of the k nearest bank entries votes for its label with weight e^{s/τ}.

    queries        Q×D, bank N×D, labels N; all unit norm
    leave_one_out  queries are the bank itself: a query's own entry has no vote

    Wu et al., Unsupervised Feature Learning via Non-Parametric Instance Discrimination, section 3.4.
    """
    k = min(k, len(bank) - int(leave_one_out))
    votes = queries.new_zeros(len(queries), classes)
    for start in range(0, len(queries), chunk):
        s = queries[start : start + chunk] @ bank.T  # q×N
        if leave_one_out:
            rows = torch.arange(len(s), device=s.device)
            s[rows, rows + start] = -2.0
        top, index = s.topk(k, dim=1)  # q×k
        weight = ((top - top[:, :1]) / tau).exp()  # shifted by the largest: same ranking, no overflow
        votes[start : start + chunk].scatter_add_(1, labels[index], weight)
    return votes
