"""Projection and prediction heads."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def unit(x: Tensor) -> Tensor:
    """Rows of unit length, in float32 at least."""
    return F.normalize(x if x.dtype == torch.float64 else x.float(), dim=1)


def mlp(dims: list[int], *, norm: bool = False) -> nn.Sequential:
    """Linear layers through `dims` with ReLU between them, batch norm before each ReLU if `norm`."""
    layers: list[nn.Module] = []
    for i, (inputs, out) in enumerate(pairwise(dims)):
        last = i == len(dims) - 2
        layers.append(nn.Linear(inputs, out, bias=last or not norm))
        if not last:
            layers += [nn.BatchNorm1d(out)] if norm else []
            layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)
