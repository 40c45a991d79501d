"""Low-rank updates of linear layers: W + B A instead of W, where only A and B train; merged wherever weights leave the run.

Hu et al. 2021, LoRA. B starts at 0, so that the model starts as it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.depth import depths, first_depth
from cuewise.errors import UserError

A, B = "low_rank_a", "low_rank_b"


class LowRankLinear(nn.Linear):
    """A linear layer with an update of rank r; its own weight and bias are frozen and keep their names."""

    low_rank_a: nn.Parameter  # r×inputs
    low_rank_b: nn.Parameter  # outputs×r

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.low_rank_a), self.low_rank_b)


def add_low_rank(backbone: nn.Module, rank: int, layers: str, arch: str) -> None:
    """Freeze the backbone and give the linear layers of the blocks that `layers` names an update of that rank."""
    found, last = depths(backbone)
    first = max(1, first_depth(layers, last))
    linear = [
        m
        for name, m in backbone.named_modules()
        if type(m) is nn.Linear and first <= found[f"{name}.weight"] < last
    ]
    if not linear:
        raise UserError(
            f"--low-rank {rank}: {arch} has no linear layers in the blocks that train; leave it out, or take a transformer"
        )
    backbone.requires_grad_(False)
    for m in linear:
        m.__class__ = LowRankLinear
        a = torch.empty(rank, m.in_features, device=m.weight.device)
        nn.init.kaiming_uniform_(a, a=math.sqrt(5))
        m.register_parameter(A, nn.Parameter(a))
        m.register_parameter(B, nn.Parameter(torch.zeros(m.out_features, rank, device=m.weight.device)))


def merged(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict with every update added to its weight: the keys of the model as it was."""
    out = {k: v for k, v in state.items() if not k.endswith((A, B))}
    for key, a in state.items():
        if key.endswith(A):
            place = key.removesuffix(A)
            out[f"{place}weight"] = state[f"{place}weight"] + state[f"{place}{B}"] @ a
    return out
