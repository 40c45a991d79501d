"""A memory bank: one vector for each training image, moved towards its latest embedding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.errors import UserError
from cuewise.methods.method import Comm, Memory, MethodSettings, Setup, at_least
from cuewise.objectives.bank_nce import bank_nce, log_partition
from cuewise.objectives.nce import extended_nce

# the optimiser of methods with a bank; each has its own milestones
STEPS = {"name": "sgd", "lr": 0.03, "reference_batch": 256, "weight_decay": 1e-4, "schedule": "step"}


@dataclass(frozen=True)
class BankSettings(MethodSettings):
    """--set insdis.*, and of other methods with a memory bank."""

    images: Annotated[int | None, "entries of the bank (n) [as many as the training set has]"] = None
    noise: Annotated[int | None, "noise entries per query (m) [as many as images, up to `most`]"] = None
    temperature: Annotated[float, "of the scores (τ)"] = 0.07
    momentum: Annotated[float, "of an entry's update"] = 0.5
    dim: Annotated[int, "of the embedding"] = 128
    loss: Annotated[str, "nce, or softmax over the own entry and the noise"] = "nce"

    most: Annotated[int, "largest `noise` where it is not given"] = 4096

    def fitted(self, images: int, steps: int) -> Self:
        n = images if self.images is None else self.images
        return replace(self, images=n, noise=max(1, min(self.most, n)) if self.noise is None else self.noise)


def check_bank(name: str, setup: Setup) -> None:
    """The settings that all methods with a memory bank share."""
    s: BankSettings = setup.settings
    if s.loss not in ("nce", "softmax"):
        raise UserError(f"{name}.loss {s.loss!r}: nce or softmax")
    at_least(f"{name}.momentum", s.momentum, 0, 1)
    at_least(f"{name}.images", s.images, 1)
    at_least(f"{name}.noise", s.noise, 1)


class Bank(Memory):
    """n×C vectors v, and the constant Z of the noise-contrastive loss, which the first batch fixes."""

    memory: Tensor
    log_z: Tensor

    def __init__(self, settings: BankSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        n, c = settings.images or 1, settings.dim
        start = 2 * torch.rand(n, c, generator=generator) - 1
        self.register_buffer("memory", start / math.sqrt(c / 3))  # about unit length
        self.register_buffer("log_z", torch.tensor(math.nan))
        self.settled = False  # whether log_z is known
        self.held: tuple[Tensor, Tensor] | None = None

    def others(self, index: Tensor, comm: Comm, generator: torch.Generator) -> Tensor:
        """B×m entries for each image, uniform over all but its own; the same draw however images are shared out."""
        n, m, b = len(self.memory), self.settings.noise or 1, len(index)
        if n < 2:
            raise UserError("a memory bank needs two images at least")
        steps = torch.randint(1, n, (comm.world * b, m), generator=generator)
        mine = steps[comm.rank * b : (comm.rank + 1) * b].to(index.device)
        return (index.unsqueeze(1) + mine) % n

    def loss(self, f: Tensor, index: Tensor, others: Tensor, comm: Comm) -> Tensor:
        """f (B×C) is classified as the entry of `index` against the entries `others`."""
        s, memory = self.settings, self.memory.to(f.dtype)
        s_p = (f * memory[index]).sum(1)  # B
        s_n = torch.einsum("bc,bmc->bm", f, memory[others])  # B×m
        if s.loss == "softmax":
            return extended_nce(s_p, s_n, tau=s.temperature)
        if not self.settled:
            self.settle(s_p, s_n, comm)
        return bank_nce(s_p, s_n, tau=s.temperature, images=len(memory), log_z=self.log_z)

    @torch.no_grad()
    def settle(self, s_p: Tensor, s_n: Tensor, comm: Comm) -> None:
        """Estimate Z from the first batch of a run; a resumed run has it. Read once: each read waits for the device."""
        if bool(torch.isnan(self.log_z)):
            both = torch.cat([s_p.unsqueeze(1), s_n], dim=1)
            each = comm.gather(log_partition(both, tau=self.settings.temperature, images=len(self.memory)))
            self.log_z.copy_(torch.logsumexp(each, 0) - math.log(len(each)))
        self.settled = True

    def hold(self, f: Tensor, index: Tensor) -> None:
        """Embeddings of this batch, B×C; the backward pass still needs the bank as it is."""
        self.held = f, index

    @torch.no_grad()
    def push(self, comm: Comm) -> None:
        """v ← normalise(m v + (1−m) f) for the images of all processes."""
        if self.held is None:
            return
        f, index = map(comm.gather, self.held)
        self.held = None
        m = self.settings.momentum
        moved = m * self.memory[index] + (1 - m) * f.to(self.memory.dtype)
        self.memory.index_copy_(0, index, F.normalize(moved, dim=1))
