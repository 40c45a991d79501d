"""NT-Xent over 2B views, with each anchor's own non-semantic negatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.objectives.nce import at_least_single, weigh_negatives


def nt_xent(
    z: tuple[Tensor, Tensor],
    everyone: tuple[Tensor, Tensor] | None = None,
    ns: tuple[Tensor, Tensor] | None = None,
    *,
    tau: float,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
    offset: int = 0,
) -> Tensor:
    """Mean over the 2b local anchors of −log of the positive's share among 2B−1 views (+ the anchor's own negatives).

    z         two b×D unit-norm views of the local images
    everyone  two B×D views of all processes' images (with gradient); None: the local ones
    ns        two b×M×D negatives, made of view 0 and of view 1; or None
    offset    row at which the local images stand in `everyone`

    Chen et al., A Simple Framework for Contrastive Learning, Eq. 1.
    """
    everyone = everyone or z
    b, total = len(z[0]), len(everyone[0])
    anchors = torch.cat(z)  # 2b×D
    logits = anchors @ torch.cat(everyone).T / tau  # 2b×2B
    rows = torch.arange(b, device=anchors.device) + offset
    itself = torch.cat([rows, rows + total])  # column of the anchor
    positive = torch.cat([rows + total, rows])  # column of its other view
    logits = logits.scatter(1, itself.unsqueeze(1), float("-inf"))
    if ns is not None and ns[0].shape[1]:
        s_ns = torch.einsum("bd,bmd->bm", anchors, torch.cat(ns))  # 2b×M
        logits = torch.cat([logits, weigh_negatives(s_ns, tau, alpha, mode)], dim=1)
    return F.cross_entropy(at_least_single(logits), positive)


def in_batch(
    z: tuple[Tensor, Tensor], everyone: tuple[Tensor, Tensor] | None = None, *, offset: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """For 2b local anchors: s_p (2b), s_n (2b×(2B−2)), and the rows of `cat(everyone)` behind the columns of s_n.

    z, everyone, offset  as in `nt_xent`, whose loss is `extended_nce` of these
    """
    everyone = everyone or z
    b, total = len(z[0]), len(everyone[0])
    s = torch.cat(z) @ torch.cat(everyone).T  # 2b×2B
    low = torch.arange(b, device=s.device) + offset  # an anchor and its positive, in either order
    low = torch.cat([low, low]).unsqueeze(1)
    high = low + total
    column = torch.arange(2 * total - 2, device=s.device).unsqueeze(0)  # jumps over both
    column = column + (column >= low)
    column = column + (column >= high)
    positive = torch.cat([high[:b], low[b:]])
    return s.gather(1, positive).squeeze(1), s.gather(1, column), column
