"""What a model or a method costs: parameters, FLOPs per image, measured images per second, peak memory."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from cuewise.config import Config
from cuewise.data import Batch, Boxes
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import as_torch_device
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.train.optim import build_optimizer
from cuewise.train.reload import is_run, load_config, load_method

SECONDS = 1.0  # of measuring, after a warm-up


def cost_of(model: str | nn.Module, *, size: int | None, batch_size: int, device: str) -> dict[str, Any]:
    """The cost of a model, or of a run: its encoder's forward pass, and its method's own training step.

    A FLOP is one multiplication or one addition; matrix products, convolutions and attention are counted. The training
    step of a model is a forward and a backward pass; that of a run is the method's step on all its views, with its
    heads, its second network and its optimiser.
    """
    if batch_size < 2:
        raise UserError(f"--batch-size {batch_size}: must be 2 or more (batch statistics)")
    where = as_torch_device(device)
    if isinstance(model, str) and is_run(Path(model)):
        if size is not None:
            raise UserError(f"--size belongs to a model; {model} is a run, with the size it was trained at")
        config = load_config(Path(model))
        method = load_method(Path(model)).to(where)
        encoder, step = method.encoder, method_step(method, made_up(method, batch_size, where), config)
        trained: nn.Module = method
        name, size = config.method_class.name, config.size
    else:
        encoder = load_encoder(model, size=size).to(where)
        name, size, step = "", encoder.card.size, model_step(encoder, batch_size, where)
        trained = encoder
    forward = forward_pass(encoder.eval(), batch_size, where)
    found = {
        "model": str(model) if isinstance(model, str) else encoder.card.arch,
        "method": name,
        "device": str(where),
        "size": size,
        "batch_size": batch_size,
        "parameters": sum(p.numel() for p in encoder.backbone.parameters()),
    }
    for kind, work, holder in (("forward", forward, encoder), ("training", step, trained)):
        encoder.train(kind == "training")
        found |= {
            f"{kind}_flops": round(flops(work) / batch_size),
            f"{kind}_images_per_s": round(batch_size / seconds(work, where), 2),
            f"{kind}_peak_memory": resident(holder) + peak(work, where),
        }
    return {k: v for k, v in found.items() if v != ""}


def forward_pass(encoder: Encoder, batch: int, device: torch.device) -> Callable[[], None]:
    """Pooled features of a batch, without gradient."""
    x = torch.randn(batch, 3, encoder.card.size, encoder.card.size, device=device)

    def work() -> None:
        with torch.no_grad():
            encoder(x)

    return work


def model_step(encoder: Encoder, batch: int, device: torch.device) -> Callable[[], None]:
    """Forward and backward of the features."""
    x = torch.randn(batch, 3, encoder.card.size, encoder.card.size, device=device)

    def work() -> None:
        encoder.zero_grad()
        encoder(x).square().mean().backward()  # type: ignore[no-untyped-call]

    return work


def method_step(method: Method, batch: Batch, config: Config) -> Callable[[], None]:
    """The method's own step: forward, backward, optimiser."""
    # a rate of nearly zero: the numbers are made up, and must stay finite over many steps
    optimizer = build_optimizer(method.train(), replace(config.optim, lr=1e-12), config.batch_size)

    def work() -> None:
        method.begin_step(0.5)
        try:
            method(batch).loss.backward()  # type: ignore[no-untyped-call]
        except KeyError as missing:
            raise UserError(
                f"cost cannot make up {missing} for the method {method.name}; give a model"
            ) from None
        method.after_backward()
        optimizer.step()
        optimizer.zero_grad()

    return work


def made_up(method: Method, n: int, device: torch.device) -> Batch:
    """A batch of noise with the method's views, negatives and facts."""
    setup, kind, g = method.setup, type(method), torch.Generator().manual_seed(0)
    specs = kind.shown(setup)
    sizes = {spec.role: spec.size or setup.size for spec in specs}
    views = {role: torch.randn(n, 3, s, s, generator=g) for role, s in sizes.items()}
    for source in kind.negatives_from:
        for role in method.negatives.roles(source):
            side = sizes.get(source, setup.size)
            views[role] = torch.randn(n, method.negatives.count, 3, side, side, generator=g)
    shared = torch.zeros(n, len(kind.compared(setup)), len(specs) - 1, dtype=torch.bool)
    facts = made_up_facts(n, sizes, max(setup.classes, 1)) | {"shared": shared}
    batch = Batch(views, torch.zeros(n, dtype=torch.int64), facts)
    return batch.to(device) if device.type != "cpu" else batch


def made_up_facts(n: int, sizes: Mapping[str, int], classes: int) -> dict[str, Any]:
    """All that a method may need of images whose views have these sizes by role: one object fills each view."""
    label = torch.arange(n) % classes
    found: dict[str, Any] = {
        "label": label,
        "labels": torch.eye(classes, dtype=torch.bool)[label],
        "name": [f"{i}.png" for i in range(n)],
        "trusted": torch.arange(n) % 4 == 0,
    }
    for role, side in sizes.items():
        whole = Boxes(np.array([[0, 0, side, side]], np.float32), np.zeros(1, np.int64))
        found[f"{role}.boxes"] = [whole] * n
        found[f"{role}.mask"] = torch.zeros(n, side, side, dtype=torch.uint8)
    return found


def flops(work: Callable[[], Any]) -> int:
    """Of one call, two per multiplication with addition."""
    own = {torch.ops.aten.convolution_backward: convolution_backward_flops}
    counter = FlopCounterMode(display=False, custom_mapping=own)
    with sdpa_kernel(SDPBackend.MATH), counter:  # attention as matrix products, which are counted everywhere
        work()
    return int(counter.get_total_flops())


def convolution_backward_flops(
    grad: Sequence[int], x: Sequence[int], weight: Sequence[int], *more: Any, **named: Any
) -> int:
    """Each gradient that is asked for, of the input and of the weight, takes the products of the forward pass.

    torch counts the weight's gradient as if every group had all channels: 64 times too many for 64 groups.
    """
    transposed, wanted = more[4], more[7]
    return sum(wanted[:2]) * 2 * math.prod(x if transposed else grad) * math.prod(weight[1:])


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """The median of repeated calls."""
    times: list[float] = []
    work()
    while sum(times) < SECONDS or len(times) < 3:
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return median(times)


def resident(module: nn.Module) -> int:
    """Bytes of parameters and buffers."""
    return sum(x.numel() * x.element_size() for x in [*module.parameters(), *module.buffers()])


def peak(work: Callable[[], Any], device: torch.device) -> int:
    """Bytes allocated at most during one call, beyond what was there before it."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return int(torch.cuda.max_memory_allocated(device) - before)
    with without_chatter(), torch.profiler.profile(profile_memory=True, record_shapes=False) as profile:
        work()
    changes = _allocations(profile)
    held, most = 0, 0
    for _, size in sorted(changes, key=lambda change: change[0]):
        held += size
        most = max(most, held)
    return most


@contextmanager
def without_chatter() -> Iterator[None]:
    """What torch's profiler writes past Python to standard error, such as that there is no GPU, is not shown."""
    sys.stderr.flush()
    shown = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)


def _allocations(profile: Any) -> Sequence[tuple[int, int]]:
    """(time, bytes): positive where memory is taken, negative where it is given back."""
    found, waiting = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        if event.tag == torch._C._profiler._EventType.Allocation:
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
    return found
