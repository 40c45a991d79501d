"""A MoCo step with images and weights channels last and in torch's plain order: which is faster here?

    python benchmarks/layout.py [--model torchvision/resnet18] [--size 64] [--batch 64] [--rounds 7]

Without --model, for a few models. Both layouts take turns in one process; a ratio above 1 says that plain order is slower.
"""

from __future__ import annotations

import argparse
from typing import Any

from row import row
from step import clock
from steps import training_step

CASES = {
    "torchvision/resnet18": 64,
    "torchvision/resnet50": 96,
    "timm/tf_efficientnet_lite0": 96,
    "cuewise/resnet-tiny": 64,
}


def steps(model: str, size: int, batch: int, layout: str) -> Any:
    return training_step(
        {
            "data": [f"shapes?n={batch}&size={size}"],
            "model": model,
            "size": size,
            "batch_size": batch,
            "moco": {"queue": 1024},
            "loop": {"layout": layout},
            "workers": "0",
            "epochs": 1000,
        }
    )


def measure(model: str, size: int, batch: int, rounds: int) -> list[float]:
    """Plain order over channels last, in turns."""
    plain, last = (steps(model, size, batch, layout) for layout in ("contiguous", "channels_last"))
    for warm in (plain, last):
        warm()
    return [clock(plain) / clock(last) for _ in range(rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="one model instead of a few")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for model, size in {given.model: given.size}.items() if given.model else CASES.items():
        row(
            f"a MoCo step with `loop.layout=contiguous`, {model} at {size} px",
            "channels last (the default)",
            measure(model, size, given.batch, given.rounds),
        )


if __name__ == "__main__":
    main()
