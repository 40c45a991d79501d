"""pretrain --dry-run: everything up to the first step, what it costs, and no run left behind."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from cuewise.data import Batch
from cuewise.errors import UserError
from cuewise.progress import clock
from cuewise.train.banner import banner
from cuewise.train.checkup import Observers
from cuewise.train.cost import flops, peak, resident, seconds
from cuewise.train.distributed import launch, resolve_devices
from cuewise.train.loop import Run
from cuewise.train.optim import set_rates
from cuewise.train.phases import silver_of
from cuewise.train.pictures import show_views
from cuewise.train.pretrain import RunMode, build, check_share, first_phase, planned
from cuewise.train.reload import progress_of

MOST = 16  # images of the steps that are measured; memory grows in proportion to them


def dry_run(
    layers: Sequence[Mapping[str, Any]], out: Path, mode: RunMode, observers: Observers | None = None
) -> dict[str, Any]:
    """The checks of a run, its configuration, its first views, and its cost, measured on parts of its first batch.

    Time and memory are estimates: a few steps on this machine as it is now, without --val and --watch.
    """
    if dist.is_torchelastic_launched():
        raise UserError("--dry-run takes one process: start it without torchrun")
    config, data, resuming = planned(layers, out, mode)
    accelerator, count = resolve_devices(config.devices)
    world = int(count) * config.num_nodes
    check_share(config, world)
    fabric = launch(f"{accelerator}:1", 1, config.precision, config.loop.timeout_minutes)
    phases = 1 if config.labels.correction == "none" else 2
    run = (
        build(config, out, data, fabric, observers) if phases == 1 else first_phase(config, out, data, fabric)
    )
    used = data if phases == 1 else silver_of(data)
    batch, loading = first_batch(run)
    folder = Path(tempfile.mkdtemp(prefix="cuewise-dry-run-"))
    show_views(batch, run.method, fabric.device, folder, used)
    measured = cost_of_step(run, batch, config.batch_size // (world * config.loop.accumulate))
    total = run.total * phases
    left = min(total, config.steps or total) - (progress_of(out)[0] if resuming else 0)
    each = seconds_per_image(1 / measured["training_images_per_s"], loading, fabric.device.type) / world
    took = max(left, 0) * config.batch_size * each
    return {
        "dry_run": True,
        "config": config.as_dict(),
        "plan": banner(run, used),
        "method": config.method,
        "model": config.model,
        "device": str(fabric.device),
        "processes": world,
        "images": len(data),
        "steps": left,
        "batch_size": config.batch_size,
        **measured,
        "loading_images_per_s": round(1 / loading, 2),
        "memory": f"about {measured['training_peak_memory'] / 1e9:.2f} GB per process, beside images and libraries",
        "seconds": round(took, 3),
        "time": f"about {clock(took)} on this machine as it is now, without --val and --watch",
        "picture": str(folder / "views.png"),
    }


def first_batch(run: Run) -> tuple[Batch, float]:
    """The batch that the run begins with, and seconds per image of the loader's processes together."""
    maker = run.loader.maker
    maker.warm_up()
    batch = maker.make(0, 0)
    began = time.perf_counter()
    maker.make(0, min(1, run.loader.steps_per_epoch - 1))
    each = (time.perf_counter() - began) / len(batch.index)
    return batch, each / max(1, run.loader.workers)


def cost_of_step(run: Run, batch: Batch, share: int) -> dict[str, Any]:
    """The keys of `cuewise cost` for the method's own step: per image, and memory for a step of `share` images."""
    sizes = parts_of(len(batch.index))
    works = [step_on(run, batch.part(0, len(batch.index) // n)) for n in sizes]
    run.method.train()
    device = run.fabric.device
    took = seconds(works[-1], device) / sizes[-1]
    peaks = [peak(work, device) for work in works]
    slope = (peaks[-1] - peaks[0]) / (sizes[-1] - sizes[0]) if len(sizes) > 1 else peaks[0] / sizes[0]
    growing = max(0.0, peaks[-1] + slope * (share - sizes[-1]))
    return {
        "parameters": sum(p.numel() for p in run.method.encoder.backbone.parameters()),
        "training_flops": round(flops(works[-1]) / sizes[-1]),
        "training_images_per_s": round(1 / took, 2),
        "training_peak_memory": round(resident(run.method) + state_bytes(run.optimizer) + growing),
    }


def parts_of(count: int) -> list[int]:
    """Up to two sizes that divide a batch, so that queues stay whole: the largest up to MOST, and the next smaller one."""
    found = [n for n in range(2, count + 1) if count % n == 0]
    return [n for n in found if n <= MOST][-2:] or found[:1] or [count]


def step_on(run: Run, part: Batch) -> Callable[[], None]:
    """A training step as the run takes it, at a rate of zero: it is repeated, and its numbers do not count."""
    part = part.to(run.fabric.device, run.method.encoder.normalise)

    def work() -> None:
        set_rates(run.optimizer, run.config.optim, 0.0, 0.0)
        run.method.begin_step(0.0)
        run.fabric.backward(run.module(part).loss)
        run.method.after_backward()
        run.optimizer.step()
        run.optimizer.zero_grad(set_to_none=True)

    return work


def state_bytes(optimizer: Any) -> int:
    """Bytes that the optimiser keeps, such as momentum."""
    states = optimizer.state_dict()
    kept = [
        v for part in states.get("parts", [states]) for one in part["state"].values() for v in one.values()
    ]
    return sum(v.numel() * v.element_size() for v in kept if isinstance(v, torch.Tensor))


def seconds_per_image(computing: float, loading: float, device: str) -> float:
    """Loading runs beside a GPU; on a CPU both need the same cores, so their times add up."""
    return computing + loading if device == "cpu" else max(computing, loading)
