"""A step does not wait for the device: nothing in it reads a value of a tensor, or a size that depends on one.

On an accelerator each of these operations stops the processor until all work before it is done. They are the same on a
CPU, where they can be counted.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cuewise.methods import Negatives, methods
from tests.methods.conftest import small_batch, small_method

WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "is_nonzero"}


class Reads(TorchDispatchMode):
    """Notes every operation that would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        boolean = name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        )
        if name in WAITS or boolean:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dialled", [False, True], ids=["plain", "negatives"])
@pytest.mark.parametrize("name", sorted(methods()))
def test_a_step_reads_nothing(name: str, dialled: bool) -> None:
    if dialled and "patch" not in methods()[name].negative_kinds():
        pytest.skip("takes no patch negatives")
    method = small_method(name, negatives=Negatives(("patch",), (2.0,)) if dialled else None)
    optimizer = torch.optim.SGD(method.parameters(), lr=0.01)
    for reads in (None, Reads()):  # once before, since the first step may set up what later ones use
        batch = small_batch(method)
        method.begin_step(0.5)
        if reads is None:
            step(method, batch, optimizer)
        else:
            with reads:
                step(method, batch, optimizer)
            assert reads.found == []


def step(method: Any, batch: Any, optimizer: Any) -> None:
    method(batch).loss.backward()
    method.after_backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
