"""A training step of each method over its own bare arithmetic: the passes of the backbone that its equation needs.

    python benchmarks/methods.py [--rounds 7] [--only byol simclr …]

ResNet-18 at 64 px, batch 64. The bound counts how often a batch passes the backbone with gradient and without: SimCLR sends two
views through with gradient, BYOL two through each network, HCL two views of an object and a scene, and three keys. BYOL's bound
has its projector and predictor, whose hidden layers are eight times as wide as the features. Other heads, losses, queues,
momentum, optimiser and normalisation are what the step adds. CAN has a file of its own (transformers), as LooC has.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torchvision
from torch import nn

from cuewise.encoders.heads import mlp
from cuewise.memory import keep_freed
from row import row
from steps import clock, training_step

BATCH, SIZE, QUEUE = 64, 64, 4096
WIDE = {
    "byol": ([512, 4096, 256], [256, 4096, 256])
}  # a projector and a predictor that cost as much as layers of the backbone
# method → (batches of images with gradient, batches without, settings)
METHODS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "moco": (1, 1, {"moco": {"queue": QUEUE}}),
    "simclr": (2, 0, {}),
    "byol": (2, 2, {}),
    "supervised": (1, 0, {}),
    "densecl": (1, 1, {"densecl": {"queue": QUEUE}}),
    "hcl": (3, 3, {"hcl": {"queue": QUEUE}, "data": [f"shapes:scenes?n={BATCH}&size={2 * SIZE}"]}),
}


def bound(learned: int, fixed: int, wide: Sequence[list[int]] = ()) -> Callable[[], None]:
    """That many batches through the bare backbone, channels last; the query through all wide heads, the key through the first."""
    networks = []
    for heads in (wide, wide[:1]):
        network = torchvision.models.resnet18()
        network.fc = nn.Identity()
        whole = nn.Sequential(network, *(mlp(dims, norm=True) for dims in heads))
        networks.append(whole.to(memory_format=torch.channels_last).train())
    query, key = networks
    x = torch.randn(BATCH, 3, SIZE, SIZE).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        with torch.no_grad():
            for _ in range(fixed):
                key(x)
        sum(query(x).sum() for _ in range(learned)).backward()
        query.zero_grad(set_to_none=True)

    return step


def ours(method: str, settings: dict[str, Any]) -> Callable[[], None]:
    """cuewise's own step, uint8 views to optimiser step."""
    return training_step(
        {
            "data": [f"shapes?n={BATCH}&size={SIZE}"],
            "method": method,
            "model": "torchvision/resnet18",
            "size": SIZE,
            "batch_size": BATCH,
            "workers": "0",
            "epochs": 1000,
            **settings,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    keep_freed()  # as `cuewise pretrain` does, for both sides
    print(f"threads: {torch.get_num_threads()}, batch {BATCH}, ResNet-18 at {SIZE} px")
    for name in given.only:
        learned, fixed, settings = METHODS[name]
        bare, own = bound(learned, fixed, WIDE.get(name, ())), ours(name, settings)
        for step in (bare, own, bare, own):  # warm-up
            step()
        ratios, seconds = [], []
        for _ in range(given.rounds):
            before, took, after = clock(bare), clock(own), clock(bare)
            ratios.append(took / ((before + after) / 2))
            seconds.append((before + after) / 2)
        print(f"{name}: bound {statistics.median(seconds):.3f} s")
        passes = f"{learned} with gradient" + (f", {fixed} without" if fixed else "")
        bare_parts = "the bare backbone and its heads" if name in WIDE else "the bare backbone"
        row(f"a step of {name}", f"{bare_parts}, batches: {passes}", ratios, goal="≤ 1.06")


if __name__ == "__main__":
    main()
