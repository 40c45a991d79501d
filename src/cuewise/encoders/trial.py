"""Forward passes on an empty image, in evaluation mode, to see what a network and its layers give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, and back to what it was."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, mode in modes:
            m.training = mode


def empty_image(network: nn.Module, size: int) -> Tensor:
    """1×3×size×size zeros, on the device and in the type of the network's weights."""
    weight = next(network.parameters(), torch.zeros(()))
    return torch.zeros(1, 3, size, size, device=weight.device, dtype=weight.dtype)


@torch.no_grad()
def trial_pass(
    network: nn.Module, size: int, layers: Iterable[tuple[str, nn.Module]], note: Callable[[str, Any], None]
) -> Any:
    """What the network returns, None where it fails; `note` gets the name and output of each layer."""

    def noting(name: str) -> Any:
        return lambda _module, _inputs, out: note(name, out)

    hooks = [m.register_forward_hook(noting(name)) for name, m in layers]
    try:
        with in_evaluation_mode(network):
            return network(empty_image(network, size))
    except Exception:  # whoever uses the network says what is wrong
        return None
    finally:
        for hook in hooks:
            hook.remove()
