"""What object-aware crops add to a training step, over random crops: images read, views made and the step, in one process.

    python benchmarks/object_crops.py [--rounds 7] [--data DATA] [--model torchvision/resnet18] [--size 64]

DATA has annotated objects (the embedded scenes unless named). Boxes are given with DATA, and read from a table as
`cuewise make boxes` writes it. Prints the median over rounds of the ratio within a round; all take turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cuewise
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.train.distributed import launch
from cuewise.train.loop import optimise
from cuewise.train.pretrain import build
from row import row

BATCH, STEPS = 32, 6


def steps(data: str, model: str, size: int, crops: dict[str, Any]) -> Callable[[], None]:
    """A few steps as `cuewise pretrain --method moco` takes them, loading included."""
    options = {
        "data": [data],
        "model": model,
        "size": size,
        "batch_size": BATCH,
        "moco": {"queue": 1024},
        "workers": "0",
        "epochs": 1000,
        "crops": crops,
    }
    config = resolve(options)
    run = build(config, Path("."), open_data(config.data), launch("cpu", 1, "32", 1))
    run.method.train()
    batches = iter(run.loader.batches(epochs=1000))

    def some() -> None:
        for _ in range(STEPS):
            optimise(run, next(batches))

    return some


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", default="shapes:scenes?n=512&size=128")
    parser.add_argument("--model", default="torchvision/resnet18")
    parser.add_argument("--size", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cuewise.make("boxes", given.data, folder, with_="given", workers=0)
        arms = {
            "random": {},
            "given": {"name": "object", "boxes": "given"},
            "table": {"name": "object", "boxes": f"{folder}/boxes.csv"},
        }
        runs = {name: steps(given.data, given.model, given.size, crops) for name, crops in arms.items()}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(given.rounds + 1):  # the first one warms up
            for name, some in runs.items():
                begin = time.perf_counter()
                some()
                if number:
                    times[name].append(time.perf_counter() - begin)
        for name in ("given", "table"):
            each = 1000 * statistics.median(times[name]) / STEPS
            row(
                f"a step with crops of objects ({name})",
                f"with random crops, {given.model} at {given.size} px",
                [a / b for a, b in zip(times[name], times["random"])],
                goal="≤ 1.03",
                note=f"{each:.0f} ms",
            )


if __name__ == "__main__":
    main()
