"""Convex problems on features: standardise, solve by L-BFGS, choose the regularisation on rows held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.probes.lbfgs import minimise
from cuewise.probes.probe import Features

Loss = Callable[
    [Tensor, Tensor], tuple[Tensor, Tensor]
]  # logits and targets → mean loss, its slope at the logits
SWEEP = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class Scale(NamedTuple):
    """x ↦ (x − mean) · factor; the factor of a feature that never changes is 0, so it can do no harm elsewhere."""

    mean: NDArray[np.float32]
    factor: NDArray[np.float32]

    def __call__(self, X: Features) -> Tensor:
        return torch.from_numpy((np.asarray(X, np.float32) - self.mean) * self.factor)


def standardiser(X: Features) -> Scale:
    """Mean 0 and deviation 1 for every feature that varies."""
    mean, std = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
    dead = std <= 1e-6 * np.abs(mean) + 1e-12
    factor = np.where(dead, 0.0, 1.0 / np.where(dead, 1.0, std))
    return Scale(mean.astype(np.float32), factor.astype(np.float32))


def scaled(X: Features, scale: Scale | None) -> Tensor:
    """Features as a solver takes them: standardised, or unchanged."""
    return torch.from_numpy(np.asarray(X, np.float32)) if scale is None else scale(X)


def sweep_name(l2: Sequence[float]) -> str:
    """How l2 is chosen, as a part of a protocol."""
    return f"l2_of_{len(l2)}_held_out" if len(l2) > 1 else f"l2_{l2[0]:g}"


def logits(x: Tensor, w: Tensor) -> Tensor:
    """x N×D, w (D+1)×C with the bias in its last row."""
    return torch.addmm(w[-1], x, w[:-1])


def cross_entropy(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and its slope, (softmax(z) − one-hot(y)) / N; z N×C, y N."""
    log_p = z.log_softmax(1)
    value = F.nll_loss(log_p, y)
    slope = log_p.exp_().div_(len(y))
    return value, slope.scatter_add_(1, y[:, None], slope.new_full((len(y), 1), -1 / len(y)))


def solve(
    x: Tensor,
    y: Tensor,
    loss: Loss,
    l2: float,
    start: Tensor,
    iterations: int,
    tolerance: float = 1e-5,  # of the largest slope
) -> Tensor:
    """argmin_w loss(x w, y) + l2/2 · ‖w‖², the bias left free, from `start` by L-BFGS."""

    def objective(flat: Tensor) -> tuple[float, Tensor]:
        w, slope = flat.view_as(start), torch.empty_like(start)
        value, at_logits = loss(logits(x, w), y)  # at_logits N×C
        torch.addmm(w[:-1], x.T, at_logits, beta=l2, out=slope[:-1])
        torch.sum(at_logits, 0, out=slope[-1])
        return float(value + l2 / 2 * w[:-1].square().sum()), slope.view(-1)

    with torch.inference_mode(False), torch.no_grad():  # wherever it is called
        return minimise(objective, start.reshape(-1), iterations, tolerance).view_as(start)


def sweep(
    x: Tensor,
    y: Tensor,
    loss: Loss,
    values: Sequence[float],
    split: tuple[NDArray[np.int64], NDArray[np.int64]],
    start: Tensor,
    iterations: int,
) -> tuple[float, Tensor]:
    """The l2 with the least loss on the held-out rows, and its solution on the rest.

    From stiff to loose, each from the solution before it. With nothing to hold out it is the middle value.
    """
    rest, held = (torch.from_numpy(part) for part in split)
    ordered = sorted(values, reverse=True)
    if len(ordered) == 1 or len(held) == 0:
        return ordered[len(ordered) // 2], start
    best, least, chosen, w = ordered[0], float("inf"), start, start
    x_rest, y_rest, x_held, y_held = x[rest], y[rest], x[held], y[held]
    for l2 in ordered:
        w = solve(x_rest, y_rest, loss, l2, w, iterations, tolerance=1e-4)  # enough to choose by
        value = float(loss(logits(x_held, w), y_held)[0])
        if value < least:
            best, least, chosen = l2, value, w
    return best, chosen
