"""What masked autoencoders predict: hidden patches of the clean image, and the noise on the visible ones."""

from __future__ import annotations

import torch
from torch import Tensor

from cuewise.objectives.nce import at_least_single

SCALE = 1000.0  # of σ/σ_max under the sinusoids


def patchify(images: Tensor, patch: int) -> Tensor:
    """B×3×H×W → B×N×P: N patches row by row, P = patch·patch·3 values each."""
    b, c, h, w = images.shape
    rows = images.reshape(b, c, h // patch, patch, w // patch, patch)
    return rows.permute(0, 2, 4, 3, 5, 1).reshape(b, (h // patch) * (w // patch), patch * patch * c)


def unpatchify(patches: Tensor, patch: int, grid: tuple[int, int]) -> Tensor:
    """The inverse of `patchify`: B×N×P → B×3×H×W."""
    b, (rows, columns) = len(patches), grid
    x = patches.reshape(b, rows, columns, patch, patch, -1).permute(0, 5, 1, 3, 2, 4)
    return x.reshape(b, -1, rows * patch, columns * patch)


def patch_statistics(patches: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each patch, B×N×1 each."""
    return patches.mean(2, keepdim=True), (patches.var(2, keepdim=True) + 1e-6).sqrt()


def reconstruction(predicted: Tensor, clean: Tensor, hidden: Tensor, *, normalise: bool = False) -> Tensor:
    """Mean squared error over the hidden patches only.

    predicted, clean  B×N×P
    hidden            B×N, True where the encoder did not see the patch
    normalise         compare with each patch less its mean and over its standard deviation

    He et al. 2022, Masked Autoencoders Are Scalable Vision Learners, section 3.
    """
    if normalise:
        mean, std = patch_statistics(clean)
        clean = (clean - mean) / std
    return _mean_where(_squared(predicted, clean), hidden)


def denoising(predicted: Tensor, noise: Tensor, hidden: Tensor) -> Tensor:
    """Mean squared error between the prediction and the noise σe, over the visible patches only.

    predicted, noise  B×N×P
    hidden            B×N

    Mishra et al. 2022, A simple, efficient and scalable contrastive masked autoencoder, section 3.3.
    """
    return _mean_where(_squared(predicted, noise), ~hidden)


def noise_level(sigma: Tensor, width: int, largest: float, *, raw: bool = False) -> Tensor:
    """B×width sinusoids of the noise level σ (B), at frequencies 10000^(−k/(width/2)).

    σ is scaled to 0…1000: frequencies are at most 1, so the sinusoids of σ itself (`raw`) are almost constant.
    """
    x = sigma if raw else SCALE * sigma / largest
    half = width // 2
    omega = 10000.0 ** (-torch.arange(half, dtype=sigma.dtype, device=sigma.device) / half)
    angles = x.unsqueeze(1) * omega  # B×width/2
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _squared(predicted: Tensor, target: Tensor) -> Tensor:
    """B×N: the mean squared error of each patch."""
    return (at_least_single(predicted) - at_least_single(target)).square().mean(2)


def _mean_where(errors: Tensor, chosen: Tensor) -> Tensor:
    return (errors * chosen).sum() / chosen.sum()
