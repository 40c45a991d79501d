"""MoCHi: negatives synthesised by mixing a query's hardest ones with each other and with the query."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mixes:
    """What was drawn: rows of the hardest N, and shares. A×s: first, second, share; A×s′: other, of_query."""

    first: Tensor
    second: Tensor
    share: Tensor  # of `first`, U(0, 1)
    other: Tensor
    of_query: Tensor  # share of the query, U(0, ½): below one half, or it would be a positive

    def rows(self, index: Tensor) -> Mixes:
        """The draws of some of the queries, on the device of `index`."""
        parts = (self.first, self.second, self.share, self.other, self.of_query)
        return Mixes(*(x.to(index.device)[index] for x in parts))


def draw_mixes(queries: int, n: int, s: int, s2: int, generator: torch.Generator) -> Mixes:
    """For each query s pairs and s′ single ones of its n hardest negatives, uniform."""
    first, second = torch.randint(n, (2, queries, s), generator=generator)
    share = torch.rand(queries, s, generator=generator)
    other = torch.randint(n, (queries, s2), generator=generator)
    return Mixes(first, second, share, other, torch.rand(queries, s2, generator=generator) / 2)


def mochi(
    q: Tensor, bank: Tensor, s_n: Tensor, mixes: Mixes, n: int, columns: Tensor | None = None
) -> Tensor:
    """A×(s+s′) similarities of each query to its synthetic negatives, which take no gradient.

    q        A×C unit-norm queries
    bank     K×C unit-norm entries, s_n A×N the similarities to a query's negatives among them
    columns  A×N: the row of the bank behind each column of s_n; None: they are the bank's own
    n        how many of the hardest are mixed

    h = (a n_i + (1−a) n_j)/‖·‖ and h′ = (b q + (1−b) n_j)/‖·‖. h is a constant, so q·h = (a s_i + (1−a) s_j)/‖·‖ with
    constant norm has the value and the gradient of h itself, and no h has to be stored.

    Kalantidis et al. 2020, Hard Negative Mixing for Contrastive Learning, Eq. 3 and 5.
    """
    top = s_n.detach().topk(n, dim=1).indices  # A×n, columns of s_n
    s_top = s_n.gather(1, top)  # A×n
    s_i, s_j = s_top.gather(1, mixes.first), s_top.gather(1, mixes.second)  # A×s
    a = mixes.share.to(q.dtype)
    with torch.no_grad():
        hardest = bank[top if columns is None else columns.gather(1, top)].to(q.dtype)  # A×n×C
        n_i, n_j = (hardest.gather(1, x.unsqueeze(2).expand(-1, -1, q.shape[1]))
                    for x in (mixes.first, mixes.second))  # fmt: skip
        norm = (a * a + (1 - a) ** 2 + 2 * a * (1 - a) * (n_i * n_j).sum(2)).clamp_min(1e-12).sqrt()
    pairs = (a * s_i + (1 - a) * s_j) / norm
    b, s_o = mixes.of_query.to(q.dtype), s_top.gather(1, mixes.other)  # A×s′
    with torch.no_grad():
        norm = (b * b + (1 - b) ** 2 + 2 * b * (1 - b) * s_o).clamp_min(1e-12).sqrt()
    itself = (q.detach() * q).sum(1, keepdim=True)  # 1, with the gradient of q·const
    return torch.cat([pairs, (b * itself + (1 - b) * s_o) / norm], dim=1)
