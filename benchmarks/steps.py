"""Training steps of cuewise that benchmarks repeat, and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuewise.config import resolve
from cuewise.data import Batch, open_data
from cuewise.train.distributed import launch
from cuewise.train.loop import Run, optimise
from cuewise.train.pretrain import build


def training_step(options: dict[str, Any]) -> Callable[[], None]:
    """The loop's own step, on one batch that is made once."""
    config = resolve(options)
    run: Run = build(config, Path("."), open_data(config.data), launch("cpu", 1, "32", 1))
    run.method.train()
    batch: Batch = next(iter(run.loader.batches(epochs=1)))

    def step() -> None:
        optimise(run, batch)
        run.step = 1

    return step


def clock(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began
