"""Activation checkpointing: of each block of a backbone only the input is kept, the rest is computed again when gradients are.

Chen et al. 2016. Same losses and gradients, to the bit, for less memory and about one more forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from cuewise.encoders.depth import blocks
from cuewise.errors import UserError


def recompute_blocks(backbone: nn.Module, arch: str) -> int:
    """Let every block of the backbone forget what it computed; returns how many there are.

    A block gets a class of its own, as an attribute would not survive a copy of the network.
    """
    found = [backbone.get_submodule(name) for name in blocks(backbone)]
    if not found:
        raise UserError(f"loop.checkpointing: {arch} has no blocks; leave it out")
    for block in found:
        kind = type(block)
        block.__class__ = type(
            kind.__name__, (kind,), {"forward": _forward_of(kind), "__module__": kind.__module__}
        )
    return len(found)


def _forward_of(kind: type[nn.Module]) -> Any:
    def forward(block: nn.Module, *args: Any, **options: Any) -> Any:
        if not torch.is_grad_enabled():
            return kind.forward(block, *args, **options)
        contexts = lambda: (nullcontext(), statistics_kept(block))  # noqa: E731
        return checkpoint(kind.forward, block, *args, use_reentrant=False, context_fn=contexts, **options)

    return forward


@contextmanager
def statistics_kept(block: nn.Module) -> Iterator[None]:
    """Batch norms move their running statistics in the first pass only, not when it is repeated."""
    norms = [m for m in block.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training]
    were = [(m, m.momentum, m.num_batches_tracked) for m in norms]
    for m in norms:
        m.momentum = 0.0
        m.num_batches_tracked = None if m.num_batches_tracked is None else m.num_batches_tracked.clone()
    try:
        yield
    finally:
        for m, momentum, batches in were:
            m.momentum, m.num_batches_tracked = momentum, batches
