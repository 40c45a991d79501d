"""Dense contrast: each cell of a feature map finds its match in the other view."""

from __future__ import annotations

import torch
from torch import Tensor

from cuewise.objectives.nce import extended_nce


@torch.no_grad()
def dense_match(f_q: Tensor, f_k: Tensor) -> Tensor:
    """B×S: for each query cell the key cell whose *backbone* features are most alike.

    f_q, f_k  B×F×S unit-norm features of the S cells of both views
    """
    similarity = torch.einsum("bfi,bfj->bij", f_q, f_k)  # B×S×S
    return similarity.argmax(2)


def dense_nce(q: Tensor, k: Tensor, match: Tensor, queue: Tensor, *, tau: float) -> Tensor:
    """Mean over all cells of −log of the matched key cell's share among it and the queued vectors.

    q, k   B×C×S unit-norm dense projections of both views
    match  B×S positions in k
    queue  K×C pooled dense keys of other images

    Wang et al. 2021, Dense Contrastive Learning, Eq. 2.
    """
    positive = k.gather(2, match.unsqueeze(1).expand(-1, k.shape[1], -1))  # B×C×S
    s_p = (q * positive).sum(1).flatten()  # B·S
    s_n = q.transpose(1, 2).flatten(0, 1) @ queue.T.to(q.dtype)  # B·S×K
    return extended_nce(s_p, s_n, tau=tau)
