"""How long an arm would take, from its first steps; and how many epochs fit a budget."""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cuewise.config import complete, resolve
from cuewise.data import open_data
from cuewise.train.distributed import launch
from cuewise.train.labels import with_labels
from cuewise.train.loop import optimise
from cuewise.train.pretrain import build

if TYPE_CHECKING:
    from cuewise.studies.jobs import ArmJob

WARM, TIMED = 3, 8  # steps


def time_job(job: ArmJob) -> float:
    """Seconds per training image of this arm on this machine."""
    config = resolve(job.config)
    data = with_labels(config, open_data(config.data))
    config = complete(config, len(data))
    fabric = launch(config.devices, 1, config.precision, 1.0)
    fabric.launch()
    with tempfile.TemporaryDirectory() as folder:
        run = build(config, Path(folder), data, fabric)
        run.method.train()
        began = time.monotonic()
        for n, batch in enumerate(islice(run.loader.batches(epochs=1), WARM + TIMED)):
            if n == WARM:
                began = time.monotonic()
            optimise(run, batch)
    steps = max(1, n + 1 - WARM)
    return (time.monotonic() - began) / (steps * config.batch_size)


def fitting_epochs(seconds: float, jobs: int, epochs: int, an_epoch: list[float], measuring: float) -> int:
    """The epochs at which all runs, `measuring` seconds each included, end within `seconds`; 1 … `epochs`.

    an_epoch: seconds each run needs for an epoch of the lab (for several where its study trains longer).
    """
    available = seconds * jobs - measuring * len(an_epoch)
    return max(1, min(epochs, int(available / sum(an_epoch)))) if sum(an_epoch) else epochs
