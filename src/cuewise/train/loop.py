"""The training loop, top to bottom."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from cuewise import compiled
from cuewise.config import Config
from cuewise.data import Batch, Loader
from cuewise.errors import Interrupted, UserError
from cuewise.methods import Method, Step
from cuewise.train.checkpoint import write_atomically
from cuewise.train.checkup import Checkup
from cuewise.train.dials import Dials
from cuewise.train.distributed import of_all
from cuewise.train.fabric import Fabric
from cuewise.train.optim import lr_factor, scaled_lr, set_rates
from cuewise.train.pictures import Reconstructions, show_views
from cuewise.train.telemetry import Telemetry, diverged
from cuewise.views import Views
from cuewise.views.deferred import DeferredViews

FORMAT = 4  # of the checkpoint
LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


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
    epoch_end: Callable[..., dict[str, float]]  # (run, measure): writes the encoder, measures k-NN accuracy
    step: int = 0  # optimiser steps done
    saved: int = 0  # step of the last checkpoint
    window: list[Tensor] = field(default_factory=list)  # losses since the last row
    dials: Dials = field(default_factory=Dials)
    skipped: dict[str, str] = field(default_factory=dict)
    reconstructions: Reconstructions = field(default_factory=Reconstructions)
    checkup: Checkup | None = None
    deferred: DeferredViews | None = None  # with loop.views=device

    @property
    def total(self) -> int:
        return self.config.loop.budget or self.loader.steps_per_epoch * self.config.epochs

    @property
    def first(self) -> bool:
        return self.fabric.is_global_zero


def fit(run: Run, banner: Sequence[str] = (), started: Callable[[], None] | None = None) -> None:
    """Train from run.step to the end (or to --steps), with a checkpoint after every epoch and every few minutes.

    started: called after the first step
    """
    config, loader = run.config, run.loader
    per_epoch = loader.steps_per_epoch
    # the groups hold the last step's rate after a resume
    base_lr = scaled_lr(config.optim, config.batch_size)
    last = min(run.total, config.steps or run.total)
    telemetry, saved = Telemetry(run, last), time.monotonic()
    for line in banner if run.step < last else ():
        telemetry.say(line)
    compiled.wait()
    looks = run.checkup or Checkup(None, None, config, per_epoch)
    if run.step < last:
        telemetry.looked(*looks.begin(run))
    run.method.train()
    with stop_signal() as stop:
        batches = loader.batches(epoch=run.step // per_epoch, step=run.step % per_epoch, epochs=config.epochs)
        for batch in batches if run.step < last and not looks.halted else ():
            batch = rendered(run, batch)
            telemetry.batch_came()
            telemetry.skipped(batch.skipped)
            telemetry.boxes(batch)
            if run.step == 0 and run.first:
                show_views(batch, run.method, run.fabric.device, run.folder, run.loader.maker.ds)
                run.reconstructions.begin(batch)
                run.reconstructions.add(run.method, run.fabric.device, 0, run.folder)

            lr = base_lr * lr_factor(config.optim, run.step, per_epoch, run.total)
            set_rates(run.optimizer, config.optim, lr, run.step / run.total)
            step = optimise(run, batch)
            run.step += 1
            telemetry.step_done(step, lr)
            if started is not None:
                started()
                started = None
            telemetry.say(looks.stepped(run, last))

            ended, halt = run.step % per_epoch == 0, _anyone(stop.requested, run.fabric)
            if not halt and (run.step >= last or looks.due(run.step)):
                telemetry.looked(*looks.take(run))
            over = run.step >= last or halt or looks.halted
            due = time.monotonic() - saved > 60 * config.loop.checkpoint_minutes
            writes = over or ended or _anyone(due, run.fabric)
            if writes:
                check_finite(run)
                telemetry.skipped(list(of_all(run.skipped).items()))
            if over or (ended and run.step // per_epoch % config.loop.val_every == 0):
                telemetry.scores(run.epoch_end(run, measure=not halt))
            if run.first and writes and (over or run.reconstructions.due(run.step, run.total)):
                run.reconstructions.add(run.method, run.fabric.device, run.step, run.folder)
            if writes:
                save(run)
                saved = time.monotonic()
            telemetry.training_resumes()
            if over:
                break
    if looks.halted and run.first:
        telemetry.say(
            f"stopped at step {run.step} by --stop-on-drop; the encoder is that of step {looks.kept}"
        )
        looks.keep_best(run.folder)
    telemetry.close()
    if run.step < last and not looks.halted:
        raise Interrupted(f"stopped at step {run.step} of {run.total}; continue with --resume")


def optimise(run: Run, batch: Batch) -> Step:
    """One optimiser step on one global batch, in `accumulate` parts."""
    parts, encoder = run.config.loop.accumulate, run.method.encoder
    batch = rendered(run, batch)
    layout = LAYOUTS[run.config.loop.layout]
    batch = batch.to(run.fabric.device, lambda x: encoder.normalise(x).contiguous(memory_format=layout))
    run.method.begin_step(run.step / run.total)
    loss = torch.zeros((), device=run.fabric.device)
    for i in range(parts):
        with run.fabric.no_backward_sync(run.module, enabled=i < parts - 1):
            step: Step = run.module(batch.part(i, parts))
            run.fabric.backward(step.loss / parts)
        run.method.after_backward()
        loss += step.loss.detach() / parts
    if run.config.optim.clip:
        run.fabric.clip_gradients(run.module, run.optimizer, max_norm=run.config.optim.clip)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    step.loss = loss
    return step


def rendered(run: Run, batch: Batch) -> Batch:
    """The batch with its views, which `loop.views=device` leaves to this process."""
    return run.deferred.render(batch, run.fabric.device) if run.deferred and not batch.views else batch


def check_finite(run: Run) -> None:
    """Nothing is written that is not finite: the last good checkpoint and encoder stay."""
    norms = torch._foreach_norm([p.detach() for p in run.method.parameters()])
    values = [*norms, *run.window]
    finite = bool(torch.isfinite(torch.stack([x.float().cpu() for x in values])).all())
    if _anyone(not finite, run.fabric):
        raise diverged(run)


def save(run: Run) -> None:
    """RUN/checkpoints/last.ckpt: everything that the rest of the run depends on, as tensors and plain values."""
    run.fabric.barrier()
    if run.first:
        content = {
            "format": FORMAT,
            "step": run.step,
            "total": run.total,
            "classes": run.method.setup.classes,
            "config": run.config.to_yaml(),
            "method": run.method.state_dict(),
            "optimizer": run.optimizer.state_dict(),
            "precision": run.fabric._precision.state_dict(),
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "window": [float(x) for x in run.window],
            "recent": run.dials.recent,
            "skipped": run.skipped,
            "reconstructions": run.reconstructions.state(),
        }
        write_atomically(content, run.folder / "checkpoints" / "last.ckpt")
    run.saved = run.step
    run.fabric.barrier()


def restore(run: Run, content: dict[str, Any]) -> None:
    """The inverse of save, into a run built from the same configuration."""
    if content["format"] != FORMAT:
        raise UserError(
            f"the checkpoint has format {content['format']}, this cuewise reads {FORMAT}; use --overwrite"
        )
    run.step = run.saved = content["step"]
    run.method.load_state_dict(content["method"])
    run.optimizer.load_state_dict(content["optimizer"])
    run.fabric._precision.load_state_dict(content["precision"])
    torch.set_rng_state(content["rng"])
    if content["cuda_rng"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(content["cuda_rng"])
    run.window = [torch.tensor(x) for x in content["window"]]
    run.dials.recent = content["recent"]
    run.skipped = dict(content["skipped"])
    run.reconstructions = Reconstructions(**content["reconstructions"])


def _anyone(flag: bool, fabric: Fabric) -> bool:
    """Whether any process says so: all must stop and save at the same step."""
    if fabric.world_size == 1:
        return flag
    anyone = torch.tensor(float(flag), device=fabric.device)
    dist.all_reduce(anyone)
    return bool(anyone > 0)


class Stop:
    """Whether a stop was asked for."""

    requested = False


@contextmanager
def stop_signal() -> Iterator[Stop]:
    """The first Ctrl-C (or SIGTERM) asks for a stop after this step; a second one stops at once."""
    stop, old = Stop(), {}

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
