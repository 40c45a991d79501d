"""What is measured of the encoder while it trains: the drift guard and the audits of --watch, on small fixed samples."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cuewise.config import Config
from cuewise.data import Dataset
from cuewise.data.overlap import check_overlap
from cuewise.encoders import Encoder
from cuewise.encoders.load import save_encoder
from cuewise.errors import UserError
from cuewise.scores import Score
from cuewise.train.guard import MAX_DROP, MOST, Guard, Outputs
from cuewise.train.start import brought_weights

if TYPE_CHECKING:
    from cuewise.train.loop import Run

SHARE = 0.05  # of training time
TIMED = 5  # steps after which the time of one is known
COMPARED = 20_000  # images of DATA that --val is compared with
FEW = 30  # answers of a watched score below which it is mostly chance
UNLABELLED = 256  # images of DATA, where there is no --val
Watcher = Callable[[Encoder], list[Score]]


@dataclass(frozen=True)
class Observers:
    """What measures an encoder while it trains; it comes from packages that know about answers and audits.

    outputs  (encoder, set, whether its labels count) → features to class numbers by the own classifier: those of the set,
             or any where labels do not count; None where it has no classifier or does not know the classes
    watcher  configuration → the audits of --watch
    """

    outputs: Callable[[Encoder, Dataset, bool], Outputs | None]
    watcher: Callable[[Config], Watcher]


class Checkup:
    """Guard and watcher at step 0, every few steps, and at the end."""

    def __init__(self, guard: Guard | None, watcher: Watcher | None, config: Config, per_epoch: int) -> None:
        self.guard, self.watcher = guard, watcher
        self.seconds = 0.0  # that the first one took
        self.began, self.timed = 0.0, 0
        self.cautions: list[str] = []
        self.doubted: set[str] = set()  # scores that too few images answer
        self.every = max(1, round(config.watch_every * per_epoch)) if config.watch_every else 0

    @property
    def idle(self) -> bool:
        return self.guard is None and self.watcher is None

    @property
    def halted(self) -> bool:
        return self.guard is not None and self.guard.stopped

    @property
    def kept(self) -> int | None:
        """Step of the last encoder within the bound."""
        return None if self.guard is None else self.guard.within

    def begin(self, run: Run) -> tuple[dict[str, float], list[str]]:
        """The start, before the first step; a resumed run compares with the start of the first call."""
        if self.guard is not None:
            self.guard.restore(run.folder / "guard.json")
        row, lines = self.take(run) if run.step == 0 else ({}, [])
        return row, [*self.cautions, *lines]

    def stepped(self, run: Run, last: int) -> str:
        """After each step: choose how often to look once the time of a step is known; returns what was chosen, once."""
        if self.idle or self.every:
            return ""
        self.began = self.began or time.monotonic()
        self.timed += 1
        if self.timed <= TIMED:
            return ""
        step = (time.monotonic() - self.began) / TIMED
        found = max(1, math.ceil(self.seconds / (SHARE * max(step, 1e-9))))
        self.every = int(run.fabric.broadcast(found))  # all processes look at the same steps
        if self.every >= last:
            return "looking at the start and at the end: more often would take over 5 % of the time (--watch-every EPOCHS)"
        return f"looking every {self.every} steps: at most 5 % of the time (--watch-every EPOCHS chooses otherwise)"

    def due(self, step: int) -> bool:
        return not self.idle and self.every > 0 and step % self.every == 0

    def take(self, run: Run) -> tuple[dict[str, float], list[str]]:
        """One look by the first process, while the others wait: guard/* and watch/* for metrics.jsonl, and what to say."""
        row: dict[str, float] = {}
        lines: list[str] = []
        began = time.monotonic()
        if run.first and self.guard is not None:
            row, lines = self.guard.look(run.method.encoder, run.step)
            if self.guard.within == run.step:
                save_encoder(run.method.encoder, run.folder / "best.safetensors", step=run.step)
            self.guard.save(run.folder / "guard.json")
        if run.first and self.watcher is not None:
            for score in self.watcher(run.method.encoder):
                lines += self.few(score)
                row |= {f"watch/{score.name}": score.value}
                row |= {f"watch/{score.name}_low": score.low, f"watch/{score.name}_high": score.high}
        self.seconds = self.seconds or time.monotonic() - began
        if self.guard is not None:
            self.guard.stopped = bool(run.fabric.broadcast(self.guard.stopped))
        run.fabric.barrier()
        return row, lines

    def few(self, score: Score) -> list[str]:
        """The warning, once for each watched score that too few images answer."""
        if score.n >= FEW or score.name in self.doubted:
            return []
        self.doubted.add(score.name)
        return [
            f"--watch {score.name}: only {score.n} images are answered, so that it will jump; give more images in --val, or "
            "(tune) the images it asks about as --test, e.g. conflict=DATA"
        ]

    def keep_best(self, folder: Path) -> None:
        """After an early stop the run's encoder is the last one within the bound."""
        for ending in (".safetensors", ".json"):
            shutil.copyfile(folder / f"best{ending}", folder / f"encoder{ending}.part")
            (folder / f"encoder{ending}.part").replace(folder / f"encoder{ending}")


def checkup_of(run: Run, data: Dataset, val: Dataset | None, observers: Observers | None) -> Checkup:
    """What the configuration asks for; the guard of models that brought weights."""
    config, brought = run.config, brought_weights(run.method) is not None
    if not brought and (config.max_drop is not None or config.stop_on_drop):
        raise UserError(
            "--max-drop and --stop-on-drop are for a model that brings weights; this one starts from none"
        )
    if config.watch and not config.val:
        raise UserError("--watch needs labelled images that are not trained on: give --val")
    if config.watch_every is not None and config.watch_every <= 0:
        raise UserError(f"--watch-every {config.watch_every}: a number of epochs above 0, e.g. 0.5")
    guard = watcher = None
    most = MAX_DROP if config.max_drop is None else config.max_drop
    if config.stop_on_drop and most <= 0:
        raise UserError("--stop-on-drop needs a --max-drop above 0, which turns the check on")
    if observers is not None and brought and most > 0:
        sample = part(val, MOST) if val is not None else part(data, UNLABELLED)
        answers = observers.outputs(run.method.encoder, sample, val is not None)
        guard = Guard(sample, val is not None, most, config.stop_on_drop, answers)
    if observers is not None and config.watch:
        watcher = observers.watcher(config)
    found = Checkup(guard, watcher, config, run.loader.steps_per_epoch)
    if val is not None and not found.idle and run.first and len(data) <= COMPARED:
        shared = check_overlap(data, part(val, MOST))
        found.cautions = [f"warning: --val: {shared}; what is kept may be memory"] if shared.count else []
    return found


def part(data: Dataset, most: int, seed: int = 0) -> Dataset:
    """A fixed random part of a large set, in its order."""
    if len(data) <= most:
        return data
    return data.select(np.sort(np.random.default_rng(seed).permutation(len(data))[:most]))
