"""The momentum copy of a network: no gradient, moved towards its source a little each step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


class GroupedBatchNorm2d(nn.BatchNorm2d):
    """Batch norm of a network without gradient: `groups` parts of the batch have statistics of their own."""

    groups = 1

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.groups == 1 or torch.is_grad_enabled():
            return super().forward(x)
        out = torch.empty_like(x)
        for part, place in zip(x.chunk(self.groups), out.chunk(self.groups)):
            if self._writes_in_place(x):
                self._norm_into(part, place)
            else:
                place.copy_(super().forward(part))
        return out

    def _writes_in_place(self, x: Tensor) -> bool:
        """Whether the result can be written where it belongs; elsewhere it is made beside and copied."""
        plain = self.affine and self.track_running_stats and self.momentum is not None
        return plain and x.device.type == "cpu" and x.dtype == self.weight.dtype

    def _norm_into(self, part: Tensor, place: Tensor) -> None:
        self.num_batches_tracked.add_(1)  # type: ignore[union-attr,operator]
        mean, scale = part.new_empty(self.num_features), part.new_empty(self.num_features)
        torch.native_batch_norm(
            part,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            True,
            float(self.momentum or 0.0),
            self.eps,
            out=(place, mean, scale),
        )


def momentum_copy(module: M) -> M:
    """A deep copy that takes no gradient; its batch norms can be grouped."""
    twin = copy.deepcopy(module).requires_grad_(False)
    for part in twin.modules():
        if type(part) is nn.BatchNorm2d:
            part.__class__ = GroupedBatchNorm2d
    return twin


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
def forward_in_groups(network: nn.Module, x: Tensor, groups: int, generator: torch.Generator) -> Any:
    """Push x through so that `groups` randomly composed parts have batch statistics of their own.

    What batch shuffling does across devices, on one: the batch of a query cannot be recognised by its key's statistics.
    Where all batch norms can be grouped it is one forward of the whole batch, otherwise one forward per part. The network
    may give a tensor (features or maps) or a named tuple of tensors, with one row per image each.
    """
    groups = max(1, min(groups, len(x) // 2))
    if groups == 1:
        return network(x)
    order = torch.randperm(len(x), generator=generator).to(x.device)
    last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    shuffled = x[order].contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    grouped = [m for m in norms if isinstance(m, GroupedBatchNorm2d)]
    if grouped and len(grouped) == len(norms):
        for m in grouped:
            m.groups = groups
        try:
            out = network(shuffled)
        finally:
            for m in grouped:
                m.groups = 1
    else:
        out = joined([network(part) for part in shuffled.chunk(groups)])
    return on_each(out, lambda y: torch.empty_like(y).index_copy_(0, order, y))


def on_each(out: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`change` applied to a tensor, or to each tensor of a named tuple."""
    return change(out) if isinstance(out, Tensor) else type(out)(*map(change, out))


def joined(parts: list[Any]) -> Any:
    """Rows of several outputs one after the other."""
    return torch.cat(parts) if isinstance(parts[0], Tensor) else type(parts[0])(*map(torch.cat, zip(*parts)))


def split_rows(out: Any, sizes: list[int]) -> list[Any]:
    """The inverse of `joined`."""
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [on_each(out, lambda x, a=end - n, b=end: x[a:b]) for n, end in zip(sizes, ends)]  # type: ignore[misc]


class KeyNetwork(nn.Sequential):
    """The momentum copy of a query network (its parts in order), and how batches of keys pass it.

    statistics  "separate": each batch has batch statistics of its own, in `groups` random parts, as published;
                "shared": keys and negatives pass together; "ema": running statistics that follow the query's
    """

    def __init__(
        self, *query: nn.Module, momentum: float, statistics: str, groups: int, generator: torch.Generator
    ) -> None:
        super().__init__(*momentum_copy(nn.Sequential(*query)))
        self.momentum, self.statistics, self.most, self.generator = momentum, statistics, groups, generator

    def train(self, mode: bool = True) -> KeyNetwork:
        return super().train(mode and self.statistics != "ema")

    def follow(self, *query: nn.Module) -> None:
        """Move towards the query network."""
        source = nn.Sequential(*query)
        follow(self, source, self.momentum)
        if self.statistics == "ema":
            follow_statistics(self, source, self.momentum)

    def groups(self, batch: int) -> int:
        """Groups of batch statistics for that many images: each keeps at least 32."""
        return 1 if self.statistics == "ema" else max(1, min(self.most, batch // 32))

    def in_groups(self, part: nn.Module, x: Tensor, groups: int) -> Any:
        """Some of the network's parts on a batch, in randomly composed groups."""
        return forward_in_groups(part, x, 1 if self.statistics == "ema" else groups, self.generator)

    @torch.no_grad()
    def embed(self, batches: list[Tensor]) -> list[Any]:
        """The network's output for keys and then for batches of negatives."""
        groups = self.groups(len(batches[0]))
        if self.statistics == "shared" and len(batches) > 1:
            return split_rows(self.in_groups(self, torch.cat(batches), groups), [len(x) for x in batches])
        return [self.in_groups(self, x, groups) for x in batches]
