"""LooC: one embedding space for each left-out augmentation, and one that is invariant to all."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cuewise.objectives.nce import extended_nce


def space_losses(
    q: Sequence[Tensor],
    keys: Sequence[Tensor],
    queues: Tensor,
    *,
    tau: float,
    equal: Sequence[Tensor | None] | None = None,
    ns: Tensor | None = None,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
) -> Tensor:
    """The n+1 losses of the spaces, each a mean over the batch of −log of the positive's share.

    q       n+1 times B×C: the query in each space
    keys    n+1 times B×J×C: keys of the same image in that space, the positive k_i in column 0; the other columns are
            negatives. Space 0 has J = 1, k₀ alone; space i ≥ 1 has J = n+1
    queues  (n+1)×K×C: earlier keys, queue i of space i
    equal   n+1 times B×(J−1), True where a key shares the query's i-th parameter by chance: it is no negative then
    ns      B×M×C: the query's own non-semantic negatives in space 0, weighed by alpha and mode; or None

    Xiao et al., What Should Not Be Contrastive in Contrastive Learning, Eq. 2.
    """
    losses = []
    for i, (query, own) in enumerate(zip(q, keys, strict=True)):
        s_p = (query * own[:, 0]).sum(1)  # B
        s_n = query @ queues[i].T  # B×K
        if own.shape[1] > 1:
            s_own = torch.einsum("bc,bjc->bj", query, own[:, 1:])  # B×(J−1)
            mask = equal[i] if equal is not None else None
            if mask is not None:
                s_own = s_own.masked_fill(mask, float("-inf"))
            s_n = torch.cat([s_own, s_n], dim=1)
        s_ns = torch.einsum("bc,bmc->bm", query, ns) if i == 0 and ns is not None else None  # B×M
        losses.append(extended_nce(s_p, s_n, s_ns, tau=tau, alpha=alpha, mode=mode))
    return torch.stack(losses)
