"""The training story, top to bottom."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from torch import Tensor

from cuewise.config import Config
from cuewise.data import Batch, Loader
from cuewise.errors import Interrupted, UserError
from cuewise.methods import Method, Step
from cuewise.progress import Progress
from cuewise.train.checkpoint import write_atomically
from cuewise.train.dials import Dials, Watch
from cuewise.train.log import Log
from cuewise.train.optim import lr_factor, scaled_lr
from cuewise.train.shown import to_device
from cuewise.views import Views, contact_sheet

FORMAT = 1  # of the checkpoint


@dataclass
class Run:
    """Everything one training run holds."""

    folder: Path
    config: Config
    fabric: Fabric
    method: Method
    module: Any  # the method as Fabric wraps it
    optimizer: Any
    loader: Loader
    views: Views
    epoch_end: Callable[[Run], dict[str, float]]  # writes the encoder, measures k-NN accuracy
    step: int = 0  # optimiser steps done
    window: list[Tensor] = field(default_factory=list)  # losses since the last row
    dials: Dials = field(default_factory=Dials)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.loader.steps_per_epoch * self.config.epochs

    @property
    def first(self) -> bool:
        return self.fabric.is_global_zero


def fit(run: Run) -> None:
    """Train from run.step to the end (or to --steps), with a checkpoint after every epoch and every few minutes."""
    config, fabric, loader = run.config, run.fabric, run.loader
    per_epoch = loader.steps_per_epoch
    base_lr = scaled_lr(config.optim, config.batch_size)  # the groups hold the last step's rate after a resume
    last = min(run.total, config.steps or run.total)
    log = Log(run.folder, run.step) if run.first else None
    watch = Watch(run.method.chance_loss, warm=max(100, per_epoch // 2))
    bar = (
        Progress(last * config.batch_size, "images", "pretraining", start=run.step * config.batch_size)
        if run.first
        else None
    )
    saved, waited, began = time.monotonic(), 0.0, time.monotonic()
    run.method.train()

    with _stop_signal() as stop:
        batches = loader.batches(epoch=run.step // per_epoch, step=run.step % per_epoch, epochs=config.epochs)
        clock = time.monotonic()
        for batch in batches if run.step < last else ():
            waited += time.monotonic() - clock
            if run.step == 0 and run.first:
                show_views(batch, run)
            report_skipped(batch, run, bar, log)

            factor = lr_factor(config.optim, run.step, per_epoch, run.total)
            for group in run.optimizer.param_groups:
                group["lr"] = base_lr * factor
            step = optimise(run, batch)
            run.step += 1
            run.window.append(step.loss.detach())
            run.dials.note(step)

            if run.step % config.loop.log_every == 0 or run.step == last:
                loss = float(torch.stack(run.window).mean())
                run.window.clear()
                elapsed = time.monotonic() - began
                row: dict[str, Any] = {
                    "step": run.step,
                    "epoch": run.step / per_epoch,
                    "train/loss": loss,
                    "lr": base_lr * factor,
                    "train/images_per_s": min(config.loop.log_every, run.step) * config.batch_size / elapsed,
                    "train/data_wait": waited / elapsed,
                    **{f"train/{k}": float(v) for k, v in step.extra.items()},
                    **run.dials.read(step),
                }
                waited, began = 0.0, time.monotonic()
                if log:
                    log.row(row)
                if log and bar:
                    for line in watch.look(run.step, loss, row):
                        bar.say(line)
                        log.say(line)
                if not math.isfinite(loss):
                    raise UserError(
                        f"the loss became {loss} at step {run.step}; the last checkpoint is kept. "
                        f"Try a lower optim.lr, more optim.warmup_epochs, or --precision 32"
                    )
            if bar:
                wait = f"{100 * waited / max(time.monotonic() - began, 1e-9):.0f}%"
                recent = float(run.window[-1]) if run.window else loss
                bar.add(config.batch_size, loss=f"{recent:.3f}", wait=wait)

            ended, halt = run.step % per_epoch == 0, _anyone(stop.requested, fabric)
            if ended and (run.step // per_epoch % config.loop.val_every == 0 or run.step == last):
                scores = run.epoch_end(run)
                if log and scores:
                    log.row({"step": run.step, "epoch": run.step / per_epoch, **scores})
                began = time.monotonic() - 1e-9
            due = _anyone(time.monotonic() - saved > 60 * config.loop.checkpoint_minutes, fabric)
            if ended or halt or due or run.step == last:
                save(run)
                saved = time.monotonic()
            if halt and run.step < last:
                run.epoch_end(run)
                raise Interrupted(f"stopped at step {run.step} of {run.total}; go on with --resume")
            if run.step >= last:
                break
            clock = time.monotonic()
        if last % per_epoch or run.step < last:
            run.epoch_end(run)
    if bar:
        bar.__exit__(None, None, None)
    if log:
        log.close()


def optimise(run: Run, batch: Batch) -> Step:
    """One optimiser step on one global batch, in `accumulate` parts."""
    parts = run.config.loop.accumulate
    views, labels = to_device(batch, run.views, run.method.encoder, run.fabric.device)
    run.method.begin_step(run.step / run.total)
    loss = torch.zeros((), device=run.fabric.device)
    for i in range(parts):
        some = {role: x.chunk(parts)[i] for role, x in views.items()}
        with run.fabric.no_backward_sync(run.module, enabled=i < parts - 1):
            step: Step = run.module(some, labels.chunk(parts)[i])
            run.fabric.backward(step.loss / parts)
        run.method.after_backward()
        loss += step.loss.detach() / parts
    if run.config.optim.clip:
        run.fabric.clip_gradients(run.module, run.optimizer, max_norm=run.config.optim.clip)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    step.loss = loss
    return step


def save(run: Run) -> None:
    """RUN/checkpoints/last.ckpt: everything that the rest of the run depends on, as tensors and plain values."""
    run.fabric.barrier()
    if run.first:
        content = {
            "format": FORMAT,
            "step": run.step,
            "config": run.config.to_yaml(),
            "method": run.method.state_dict(),
            "optimizer": run.optimizer.state_dict(),
            "precision": run.fabric._precision.state_dict(),
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "window": [float(x) for x in run.window],
            "recent": run.dials.recent,
            "skipped": run.skipped,
        }
        write_atomically(content, run.folder / "checkpoints" / "last.ckpt")
    run.fabric.barrier()


def restore(run: Run, content: dict[str, Any]) -> None:
    """The inverse of save, into a run built from the same configuration."""
    if content["format"] != FORMAT:
        raise UserError(
            f"the checkpoint has format {content['format']}, this cuewise reads {FORMAT}; use --overwrite"
        )
    run.step = content["step"]
    run.method.load_state_dict(content["method"])
    run.optimizer.load_state_dict(content["optimizer"])
    run.fabric._precision.load_state_dict(content["precision"])
    torch.set_rng_state(content["rng"])
    if content["cuda_rng"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(content["cuda_rng"])
    run.window = [torch.tensor(x) for x in content["window"]]
    run.dials.recent = content["recent"]
    run.skipped = dict(content["skipped"])


def show_views(batch: Batch, run: Run) -> None:
    """RUN/views.png: the first images of the first batch as the encoder sees them."""
    columns = {role: x[:8].numpy() for role, x in batch.views.items()}
    contact_sheet(columns).save(run.folder / "views.png")


def report_skipped(batch: Batch, run: Run, bar: Progress | None, log: Log | None) -> None:
    """Say each broken file once."""
    for name, why in batch.skipped:
        if name not in run.skipped:
            run.skipped[name] = why
            if bar and log:
                bar.say(f"skipped {name}: {why}")
                log.say(f"skipped {name}: {why}")


def _anyone(flag: bool, fabric: Fabric) -> bool:
    """Whether any process says so: all must stop and save at the same step."""
    if fabric.world_size == 1:
        return flag
    told = torch.tensor(float(flag), device=fabric.device)
    dist.all_reduce(told)
    return bool(told > 0)


class _Stop:
    requested = False


@contextmanager
def _stop_signal() -> Iterator[_Stop]:
    """The first Ctrl-C (or SIGTERM) asks for a stop after this step; a second one stops at once."""
    stop, old = _Stop(), {}

    def handle(number: int, frame: object) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            old[number] = signal.signal(number, handle)
        except ValueError:  # not in the main thread: the caller's handlers stay
            break
    try:
        yield stop
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
