"""CAN's step over what it cannot do without, and the time of encoding half of the patches over that of encoding all.

    python benchmarks/can.py [--rounds 9]

The bound is forward and backward of the bare transformer on the visible patches of two views and of the decoder. All
candidates take turns in one process; the numbers are medians over rounds of ratios within a round.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cuewise.config import resolve
from cuewise.data import Batch, open_data
from cuewise.memory import keep_freed
from cuewise.methods.masking import Decoder, Draws
from cuewise.methods.method import SingleProcess
from cuewise.train.distributed import launch
from cuewise.train.loop import Run, optimise
from cuewise.train.pretrain import build
from row import row
from steps import clock

BATCH, SIZE = 64, 32
STEP_GOAL, HALF_GOAL = 1.08, 0.6


def built() -> tuple[Run, Batch]:
    """A run of CAN and its first batch, uint8."""
    config = resolve(
        {
            "data": [f"shapes?n={BATCH}&size={SIZE}"],
            "method": "can",
            "model": "cuewise/vit-tiny",
            "size": SIZE,
            "batch_size": BATCH,
            "workers": "0",
            "epochs": 1000,
        }
    )
    run = build(config, Path("."), open_data(config.data), launch("cpu", 1, "32", 1))
    run.method.train()
    return run, next(iter(run.loader.batches(epochs=1)))


def own_step(run: Run, batch: Batch) -> Callable[[], None]:
    """From uint8 views to the optimiser's step, as `cuewise pretrain` runs it."""

    def step() -> None:
        optimise(run, batch)
        run.step = 1

    return step


def bound(run: Run) -> Callable[[], None]:
    """Encoder on the visible patches and decoder, forward and backward, for two views."""
    encoder, method = run.method.encoder, run.method
    decoder = Decoder(encoder, None, None, masked=True)
    x = torch.randn(BATCH, 3, SIZE, SIZE)
    patches = encoder.grid[0] * encoder.grid[1]
    keep = Draws(SingleProcess(), torch.Generator().manual_seed(0)).keep(x, patches, method.settings.mask)

    def step() -> None:
        for _ in range(2):
            tokens = encoder.tokens(x, keep)
            decoder(tokens, keep).square().mean().backward()
        encoder.zero_grad(set_to_none=True)
        decoder.zero_grad(set_to_none=True)

    return step


def encoding(run: Run, share: float) -> Callable[[], None]:
    """Forward and backward of a share of the patches."""
    encoder = run.method.encoder
    x = torch.randn(BATCH, 3, SIZE, SIZE)
    keep: Tensor | None = Draws(SingleProcess(), torch.Generator().manual_seed(0)).keep(
        x, encoder.grid[0] * encoder.grid[1], 1 - share
    )

    def step() -> None:
        encoder.tokens(x, keep).square().mean().backward()
        encoder.zero_grad(set_to_none=True)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    keep_freed()  # as `cuewise pretrain` does, for all candidates
    run, batch = built()
    steps: dict[str, Any] = {
        "step": own_step(run, batch),
        "bound": bound(run),
        "half": encoding(run, 0.5),
        "all": encoding(run, 1.0),
    }
    for step in steps.values():
        step()
    times = [{name: clock(step) for name, step in steps.items()} for _ in range(rounds)]
    row(
        "step of CAN, vit-tiny at 32 pixels",
        "encoder on visible patches + decoder",
        [t["step"] / t["bound"] for t in times],
        goal=f"≤ {STEP_GOAL}",
    )
    half = [t["half"] / t["all"] for t in times]
    row("encoding half of the patches", "encoding all", half, goal=f"≤ {HALF_GOAL}")


if __name__ == "__main__":
    main()
