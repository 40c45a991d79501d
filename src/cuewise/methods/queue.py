"""The queue of earlier keys that queries are contrasted with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.methods.method import Comm, Memory


class Queue(Memory):
    """The last K keys, first in, first out: `keys` is K×C, or S×K×C with one queue per embedding space.

    The keys of a batch are held until its backward pass is done: a query never meets its own key in the queue.
    """

    keys: Tensor
    position: Tensor

    def __init__(self, length: int, dim: int, generator: torch.Generator, spaces: int | None = None) -> None:
        super().__init__()
        shape = (length, dim) if spaces is None else (spaces, length, dim)
        self.register_buffer("keys", F.normalize(torch.randn(shape, generator=generator), dim=-1))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))
        self.held: Tensor | None = None

    def __len__(self) -> int:
        return self.keys.shape[-2]

    def hold(self, keys: Tensor) -> None:
        """Keys of this batch, B×C or B×S×C, to be queued by `push`."""
        self.held = keys

    @torch.no_grad()
    def push(self, comm: Comm) -> None:
        """Queue the held keys of all processes; K need not be a multiple of the batch."""
        if self.held is None:
            return
        K = len(self)
        new = comm.gather(self.held)[-K:].movedim(0, -2)  # …×B×C
        rows = (torch.arange(new.shape[-2], device=new.device) + self.position) % K
        self.keys.index_copy_(-2, rows, new.to(self.keys.dtype))
        self.position.copy_((self.position + new.shape[-2]) % K)
        self.held = None
