"""IFM: InfoNCE averaged with itself at similarities moved by ε against the query."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from cuewise.objectives.nce import extended_nce


def ifm_nce(
    s_p: Tensor,
    s_n: Tensor,
    s_ns: Tensor | None = None,
    *,
    tau: float,
    epsilon: float,
    alpha: float | Sequence[float] = 1.0,
    mode: str = "in",
) -> Tensor:
    """½ [ L(s_p, s_n, s_ns) + L(s_p − ε, s_n + ε, s_ns + ε) ], ε before the division by τ.

    s_p, s_n, s_ns  as in `extended_nce`; a query's own negatives are negatives and move like the others

    Robinson et al. 2021, Can Contrastive Learning Avoid Shortcut Solutions?, Eq. 6.
    """
    plain = extended_nce(s_p, s_n, s_ns, tau=tau, alpha=alpha, mode=mode)
    moved = None if s_ns is None else s_ns + epsilon
    harder = extended_nce(s_p - epsilon, s_n + epsilon, moved, tau=tau, alpha=alpha, mode=mode)
    return (plain + harder) / 2
