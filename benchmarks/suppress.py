"""What texture suppression costs: a step of DenseCL over the bare backbone, and `cuewise pretrain` with filters in its loader.

    python benchmarks/suppress.py [--images 1280] [--rounds 5] [--filters anisotropic robust]

DenseCL's bound is the bare backbone (query forward + backward, key forward) of the same round, ResNet-18 at 64 px. The
rate of `pretrain` with --suppress is over that of a run without it just before, from the same zip of JPEGs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuewise import pretrain
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.train.distributed import launch
from cuewise.train.log import read_metrics
from cuewise.train.loop import optimise
from cuewise.train.pretrain import build
from pretrain import write_zip
from row import row
from step import BATCH, QUEUE, bound, clock

SIZE = 64


def dense_step() -> Callable[[], None]:
    """cuewise's own step of DenseCL, uint8 views to optimiser step."""
    options: dict[str, Any] = {
        "data": [f"shapes?n={BATCH}&size={SIZE}"],
        "method": "densecl",
        "model": "torchvision/resnet18",
        "size": SIZE,
        "batch_size": BATCH,
        "densecl": {"queue": QUEUE},
        "workers": "0",
        "epochs": 1000,
    }
    config = resolve(options)
    run = build(config, Path("."), open_data(config.data), launch("cpu", 1, "32", 1))
    run.method.train()
    batch = next(iter(run.loader.batches(epochs=1)))

    def step() -> None:
        optimise(run, batch)
        run.step = 1

    return step


def dense_ratios(rounds: int) -> list[float]:
    """The step's time over the bound's, in every round."""
    step, bare = dense_step(), bound("resnet18", SIZE)
    step()
    bare()
    ratios = []
    for _ in range(rounds):
        before, own, after = clock(bare), clock(step), clock(bare)
        ratios.append(own / ((before + after) / 2))
    return ratios


def rate(folder: Path, number: int, suppress: str | None) -> float:
    """Images per second of a run, its first two rows left out as warm-up."""
    out = folder / f"run{number}"
    pretrain(
        str(folder / "images.zip"),
        out=str(out),
        model="torchvision/resnet18",
        size=SIZE,
        batch_size=BATCH,
        epochs=2,
        suppress=suppress,
        set=[f"moco.queue={QUEUE}", "loop.log_every=5"],
    )
    rows = read_metrics(out / "metrics.jsonl")
    rates = [r["train/images_per_s"] for r in rows if "train/images_per_s" in r][2:]
    return len(rates) / sum(1 / r for r in rates)


def filter_ratios(folder: Path, name: str, rounds: int, first: int) -> list[float]:
    """The rate with the filter over the rate without, each pair run one after the other."""
    ratios = []
    for i in range(rounds):
        plain = rate(folder, first + 2 * i, None)
        ratios.append(rate(folder, first + 2 * i + 1, name) / plain)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filters", nargs="*", default=["anisotropic"])
    args = parser.parse_args()
    row(
        "a DenseCL step, ResNet-18 at 64 px",
        "the bare backbone with its key forward",
        dense_ratios(4 * args.rounds),
        goal="≤ 1.08",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CUEWISE_CACHE"] = str(folder / "cache")
        write_zip(folder / "images.zip", args.images)
        for n, kind in enumerate(args.filters):
            row(
                f"`cuewise pretrain --suppress {kind}` at 64 px",
                "the same without it",
                filter_ratios(folder, kind, args.rounds, 1000 * n),
                "of its rate",
                "≥ 0.85",
            )


if __name__ == "__main__":
    main()
