"""One forward pass on an empty image, to see what the layers of a network give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


@torch.no_grad()
def trial_pass(
    network: nn.Module, size: int, layers: Iterable[tuple[str, nn.Module]], note: Callable[[str, Any], None]
) -> Any:
    """What the network returns, None where it fails; `note` gets the name and output of each layer.

    Hooks are removed and training modes put back.
    """

    def noting(name: str) -> Any:
        return lambda _module, _inputs, out: note(name, out)

    weight = next(network.parameters(), torch.zeros(()))
    modes = [(m, m.training) for m in network.modules()]
    hooks = [m.register_forward_hook(noting(name)) for name, m in layers]
    try:
        return network.eval()(torch.zeros(1, 3, size, size, device=weight.device, dtype=weight.dtype))
    except Exception:  # whoever uses the network says what is wrong
        return None
    finally:
        for hook in hooks:
            hook.remove()
        for m, mode in modes:
            m.training = mode
