"""The momentum copy of a network: no gradient, moved towards its source a little each step."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def momentum_copy(module: M) -> M:
    """A deep copy that takes no gradient."""
    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def follow(target: nn.Module, source: nn.Module, m: float) -> None:
    """θ_k ← m θ_k + (1 − m) θ_q for all parameters at once; buffers stay the target's own."""
    ours: list[Tensor] = list(target.parameters())
    theirs: list[Tensor] = [p.detach() for p in source.parameters()]
    torch._foreach_lerp_(ours, theirs, 1.0 - m)


@torch.no_grad()
def follow_statistics(target: nn.Module, source: nn.Module, m: float) -> None:
    """The same for running statistics of batch norms, so that the target can do without a batch of its own.

    Cai et al. 2021, Exponential Moving Average Normalization.
    """
    for ours, theirs in zip(target.buffers(), source.buffers()):
        if ours.dtype.is_floating_point:
            ours.lerp_(theirs, 1.0 - m)
        else:
            ours.copy_(theirs)


@torch.no_grad()
def forward_in_groups(network: nn.Module, x: Tensor, groups: int, generator: torch.Generator) -> Tensor:
    """Push x through in `groups` randomly composed parts, each with batch statistics of its own.

    What batch shuffling does across devices, on one: a query's batch cannot be told from its key's statistics.
    """
    groups = max(1, min(groups, len(x) // 2))
    if groups == 1:
        return network(x)  # type: ignore[no-any-return]
    order = torch.randperm(len(x), generator=generator).to(x.device)
    parts = x[order].chunk(groups)
    out = torch.cat([network(part.contiguous(memory_format=torch.channels_last)) for part in parts])
    return torch.empty_like(out).index_copy_(0, order, out)
