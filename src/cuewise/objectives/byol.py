"""BYOL's regression with repulsion from negatives."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def byol(
    p: Tensor, z: Tensor, negatives: Tensor | None = None, *, alpha: float | Sequence[float] = 0.0
) -> Tensor:
    """Mean over the batch of ‖p − z‖² − Σ_m α_m ‖p − n_m‖² for unit-norm vectors.

    p          B×D    predictions of the online branch
    z          B×D    targets (no gradient)
    negatives  B×M×D  of the target branch (no gradient), or None
    alpha      one weight, or one for each of the M negatives

    Ge et al., Eq. 2: 2 − 2α − 2 p·z + 2α p·n. (Norms are squared: the printed expansion is of squares.)
    """
    loss = 2 - 2 * (p * z).sum(-1)  # B
    if negatives is not None and negatives.shape[1]:
        weights = [alpha] * negatives.shape[1] if isinstance(alpha, int | float) else list(alpha)
        distance = 2 - 2 * (p.unsqueeze(1) * negatives).sum(-1)  # B×M
        loss = loss - (distance * distance.new_tensor(weights)).sum(1)
    return loss.mean()
