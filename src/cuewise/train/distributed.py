"""Several processes: what methods need of the others, over Lightning Fabric's process group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from cuewise.errors import UserError
from cuewise.train.fabric import DDPStrategy, Fabric


class ProcessGroup:
    """All processes of the default group; alone when there is none."""

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.world = dist.get_world_size() if joined else 1

    def gather(self, x: Tensor) -> Tensor:
        """Rows of all processes in rank order; each process gets back the gradient of its own rows."""
        if self.world == 1:
            return x
        return _Gather.apply(x) if x.requires_grad else _all_rows(x)  # type: ignore[no-any-return,no-untyped-call]


def of_all(items: dict[str, str]) -> dict[str, str]:
    """What any process has, in rank order."""
    everyone = ProcessGroup()
    if everyone.world == 1:
        return items
    found: list[Any] = [None] * everyone.world
    dist.all_gather_object(found, items)
    return {k: v for part in found for k, v in part.items()}


class _Gather(torch.autograd.Function):
    """All-gather whose backward sums over processes.

    Each process's loss is a mean over its own anchors, and DDP averages gradients over processes: with the sum here,
    that average is the gradient of the mean over the joint batch.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _all_rows(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous()
        dist.all_reduce(total)
        rank, world = dist.get_rank(), dist.get_world_size()
        return total.chunk(world)[rank]


def _all_rows(x: Tensor) -> Tensor:
    parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def launch(devices: str, num_nodes: int, precision: str, timeout_minutes: float) -> Fabric:
    """A Fabric for CPU, one GPU, several GPUs or several nodes; joins torchrun's or SLURM's processes if started by them."""
    accelerator, count = resolve_devices(devices)
    many = count not in (1, "1") or num_nodes > 1 or dist.is_torchelastic_launched()
    strategy: Any = "auto"
    if many:
        # buffers stay each process's own: the queue is already equal, batch statistics are local by design
        strategy = DDPStrategy(
            broadcast_buffers=False,
            gradient_as_bucket_view=True,
            timeout=timedelta(minutes=timeout_minutes),
            process_group_backend="nccl" if accelerator == "cuda" else "gloo",
        )
    kind: Any = resolve_precision(precision, accelerator)
    return Fabric(
        accelerator=accelerator, devices=count, num_nodes=num_nodes, strategy=strategy, precision=kind
    )


def resolve_devices(text: str) -> tuple[str, Any]:
    """ "auto", "2", "cpu", "cpu:2", "cuda:4", "mps" → accelerator and count."""
    best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    name, _, number = text.partition(":")
    if text.isdigit():
        name, number = best, text
    if name == "auto":
        return best, torch.cuda.device_count() if best == "cuda" else 1
    if name not in ("cpu", "cuda", "mps") or (number and not number.isdigit()) or number == "0":
        raise UserError(f"--devices {text}: auto, a number, cpu, cpu:2, cuda, cuda:4 or mps")
    if name != "cpu" and best != name:
        raise UserError(f"--devices {text}: this machine has no {name}; use --devices cpu")
    return name, int(number) if number else 1


LOST = re.compile(
    r"closed by peer|connection (closed|reset|refused)|broken pipe|timed out|timeout|nccl", re.I
)


@contextmanager
def explain_lost_process(world: int) -> Iterator[None]:
    """Where one of several processes is killed, the others end in one line."""
    try:
        yield
    except RuntimeError as error:  # gloo's and NCCL's errors are of this kind
        if world == 1 or LOST.search(str(error)) is None:
            raise
        raise UserError(
            f"another of the {world} processes of this run has ended or hangs; see its messages (most often: not enough "
            "memory), then continue with --resume"
        ) from error


PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "fp16": "16-mixed", "fp32": "32-true"}


def resolve_precision(text: str, accelerator: str) -> str:
    """auto is bf16 where the hardware computes in it, else 32; bf16 on a CPU without it is refused (ten times slower)."""
    if text == "auto":
        return "bf16-mixed" if accelerator == "cuda" and torch.cuda.is_bf16_supported() else "32-true"
    if text not in PRECISIONS:
        raise UserError(f"--precision {text}: auto, 32, bf16 or 16")
    kind = PRECISIONS[text]
    if accelerator == "cpu" and kind == "bf16-mixed" and not cpu_has_bf16():
        raise UserError(
            "--precision bf16: this CPU has no bf16 arithmetic and would be about ten times slower; use 32"
        )
    if accelerator == "cpu" and kind == "16-mixed":
        raise UserError("--precision 16 needs a GPU; use --precision 32")
    return kind


def cpu_has_bf16() -> bool:
    """Whether the CPU multiplies bf16 natively (AVX-512 BF16, AMX or Arm's BF16)."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported", "_is_arm_bf16_supported")
    return any(getattr(torch.cpu, name)() for name in checks if hasattr(torch.cpu, name))
