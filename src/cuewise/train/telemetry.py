"""What a run reports while it trains: rows of metrics, a progress bar, warnings."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import torch

from cuewise.data import Batch
from cuewise.errors import UserError
from cuewise.methods import Step
from cuewise.progress import Progress, clock
from cuewise.train.dials import Watch
from cuewise.train.log import Log

if TYPE_CHECKING:
    from cuewise.train.loop import Run

ESTIMATE_AFTER = 5  # steps


class Telemetry:
    """Times the steps of a run; the first process also writes and shows what it finds."""

    def __init__(self, run: Run, last: int) -> None:
        self.run, self.last = run, last
        self.log = Log(run.folder, run.step, run.config.log) if run.first else None
        warm = max(100, run.loader.steps_per_epoch // 2)
        self.watch = Watch(run.method.chance_loss, warm, run.method.least_spread)
        size, verb = run.config.batch_size, "tuning" if run.method.keeps_classifier else "pretraining"
        self.bar = Progress(last * size, "images", verb, start=run.step * size) if run.first else None
        # the last loss that was read: reading each would make an accelerator wait
        self.shown: float | None = None
        self.estimated = False
        self.boxed, self.unboxed = 0, 0  # images of object-aware crops
        self.warned = False
        self.fields: dict[str, str] = {}  # of the last checkup, for the progress line
        self.restart()

    def restart(self) -> None:
        """Begin a new window of time; what happens between epochs is not training."""
        self.waited, self.timed, self.began = 0.0, 0, time.monotonic()
        self.asked = self.began

    def training_resumes(self) -> None:
        """Leave out what came after the step, such as a checkpoint: it is neither training nor waiting for data."""
        now = time.monotonic()
        self.began += now - self.asked
        self.asked = now

    def batch_came(self) -> None:
        """The data was waited for since the last step."""
        self.waited += time.monotonic() - self.asked

    def boxes(self, batch: Batch) -> None:
        """Count the images whose crops come from boxes, where that was asked for."""
        regions = [v for name, v in batch.facts.items() if name.endswith(".region")]
        if regions:
            found = int((torch.stack(regions, 1)[..., 2] >= 0).any(1).sum())
            self.boxed, self.unboxed = self.boxed + found, self.unboxed + len(batch) - found

    def step_done(self, step: Step, lr: float) -> None:
        """Count a step; every few steps write a row and look for trouble."""
        run, config = self.run, self.run.config
        self.timed += 1
        run.window.append(step.loss.detach())
        if self.shown is None:
            self.shown = float(step.loss.detach())
        run.dials.note(step)
        if run.step % config.loop.log_every == 0 or run.step == self.last:
            self.write_row(step, lr)
        if self.bar:
            wait = 100 * self.waited / max(time.monotonic() - self.began, 1e-9)
            self.bar.add(config.batch_size, loss=f"{self.shown:.3f}", wait=f"{wait:.0f}%", **self.fields)
        if not self.estimated and self.timed == ESTIMATE_AFTER < self.last - run.step:
            self.estimate()
        self.asked = time.monotonic()

    def write_row(self, step: Step, lr: float) -> None:
        """One row of metrics.jsonl, from the losses and the time since the last one."""
        run, elapsed = self.run, max(time.monotonic() - self.began, 1e-9)
        mean: Any = run.fabric.all_reduce(torch.stack(run.window).mean(), reduce_op="mean")
        self.shown = float(mean)
        run.window.clear()
        if not math.isfinite(self.shown):
            if self.log:
                self.log.row({"step": run.step, "train/loss": self.shown, "lr": lr})
            raise diverged(run)
        row: dict[str, Any] = {
            "step": run.step,
            "epoch": run.step / run.loader.steps_per_epoch,
            "train/loss": self.shown,
            "lr": lr,
            "train/images_per_s": self.timed * run.config.batch_size / elapsed,
            "train/data_wait": self.waited / elapsed,
            **(
                {"train/boxed": self.boxed / (self.boxed + self.unboxed)} if self.boxed + self.unboxed else {}
            ),
            **{f"train/{k}": float(v) for k, v in step.extra.items()},
            **run.dials.read(step),
        }
        self.restart()
        if self.log:
            self.log.row(row)
        for line in self.watch.look(run.step, self.shown, row):
            self.say(line)
        if self.unboxed and not self.warned:
            self.warned = True
            self.say(
                f"{self.unboxed} of the first {self.boxed + self.unboxed} images have no box that can be used: their crops "
                "are ordinary ones (train/boxed in metrics.jsonl is the share with boxes)"
            )

    def estimate(self) -> None:
        """How long the run will take, once its rate is known."""
        self.estimated = True
        rate = self.timed / max(time.monotonic() - self.began, 1e-9)
        left = (self.last - self.run.step) / rate
        images = rate * self.run.config.batch_size
        self.say(
            f"{images:.0f} images/s: about {clock(left)} for the remaining {self.last - self.run.step} steps"
        )

    def looked(self, row: dict[str, float], lines: list[str]) -> None:
        """What a checkup found."""
        self.fields = {k.partition("/")[2]: f"{v:.3f}" for k, v in row.items() if k in self.shown_keys(row)}
        self.scores(row)
        for line in lines:
            self.say(line)

    @staticmethod
    def shown_keys(row: dict[str, float]) -> list[str]:
        """What stands in the progress line: the values of --watch, and the guard's accuracy or agreement."""
        watched = [k for k in row if k.startswith("watch/") and not k.endswith(("_low", "_high"))]
        guard = next((k for k in ("guard/accuracy", "guard/agreement") if k in row), None)
        return watched + ([guard] if guard and "watch/accuracy" not in row else [])

    def scores(self, scores: dict[str, float]) -> None:
        """A row of measured scores between epochs."""
        if self.log and scores:
            self.log.row(
                {"step": self.run.step, "epoch": self.run.step / self.run.loader.steps_per_epoch, **scores}
            )
        self.restart()

    def skipped(self, found: list[tuple[str, str]]) -> None:
        """Say each broken file once."""
        for name, why in found:
            if name not in self.run.skipped:
                self.run.skipped[name] = why
                self.say(f"skipped {name}: {why}")

    def say(self, line: str) -> None:
        if line and self.bar and self.log:
            self.bar.say(line)
            self.log.say(line)

    def close(self) -> None:
        if self.bar and self.log:
            self.bar.__exit__(None, None, None)
            self.log.close()


def diverged(run: Run) -> UserError:
    """What to do when loss or weights are no longer finite."""
    kept = run.folder / "checkpoints" / "last.ckpt"
    state = (
        f"the checkpoint of step {run.saved} is kept in {kept}"
        if run.saved
        else "no checkpoint was written yet"
    )
    return UserError(
        f"training diverged: the loss or the weights are not finite at step {run.step}; {state}. "
        "Start again with a lower --set optim.lr=…, more optim.warmup_epochs, or --precision 32"
    )
