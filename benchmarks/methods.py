"""A training step of each method over its own bare arithmetic: the passes of the backbone that its equation needs.

    python benchmarks/methods.py [--rounds 7] [--only byol simclr …]

ResNet-18 at 64 px, batch 64. The bound counts how often a batch passes the backbone with gradient and without: SimCLR sends two
views through with gradient, BYOL two through each network, HCL two views of an object and a scene, and three keys. Two methods
multiply much behind the backbone, and that is in their bounds: BYOL's projector and predictor, whose hidden layers are eight
times as wide as the features, and DenseCL's two heads and its products of every cell with every queued key. Other heads, losses,
queues, momentum, optimiser and normalisation are what the step adds. CAN has a file of its own (transformers), as LooC has.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch
import torchvision
from torch import Tensor, nn

from cuewise.encoders.heads import mlp
from cuewise.memory import keep_freed
from row import row
from steps import clock, training_step

BATCH, SIZE, QUEUE = 64, 64, 4096
# method → (batches of images with gradient, batches without, settings)
METHODS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "moco": (1, 1, {"moco": {"queue": QUEUE}}),
    "simclr": (2, 0, {}),
    "byol": (2, 2, {}),
    "supervised": (1, 0, {}),
    "densecl": (1, 1, {"densecl": {"queue": QUEUE}}),
    "hcl": (3, 3, {"hcl": {"queue": QUEUE}, "data": [f"shapes:scenes?n={BATCH}&size={2 * SIZE}"]}),
}


class DenseTail(nn.Module):
    """DenseCL behind the map: a head for the image, one for its cells, and for queries both products with the queue."""

    def __init__(self, compares: bool) -> None:
        super().__init__()
        self.head = mlp([512, 512, 128])
        self.dense = nn.Sequential(nn.Conv2d(512, 512, 1), nn.ReLU(), nn.Conv2d(512, 128, 1))
        self.compares = compares
        self.register_buffer("keys", torch.randn(QUEUE, 128))

    def forward(self, x: Tensor) -> Tensor:
        cells = x.unflatten(1, (512, SIZE // 32, SIZE // 32))
        found = self.head(cells.mean((2, 3))), self.dense(cells).flatten(2).transpose(1, 2).flatten(0, 1)
        return sum((y @ self.keys.T if self.compares else y).sum() for y in found)  # type: ignore[return-value,operator]


def tails(method: str) -> tuple[list[nn.Module], list[nn.Module]]:
    """What multiplies much behind the backbone, in the query's network and in the key's."""
    if method == "byol":
        projector, predictor = [512, 4096, 256], [256, 4096, 256]
        return [mlp(projector, norm=True), mlp(predictor, norm=True)], [mlp(projector, norm=True)]
    if method == "densecl":
        return [DenseTail(True)], [DenseTail(False)]
    return [], []


BEHIND = {"byol": " and its heads", "densecl": ", its heads and products with the queue"}


def bound(method: str) -> Callable[[], None]:
    """Its batches through the bare backbone, channels last, and what `tails` says."""
    learned, fixed, _ = METHODS[method]
    networks = []
    for tail in tails(method):
        network = torchvision.models.resnet18()
        network.fc = nn.Identity()
        if method == "densecl":
            network.avgpool = nn.Identity()  # the tail pools
        networks.append(nn.Sequential(network, *tail).to(memory_format=torch.channels_last).train())
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
        bare, own = bound(name), ours(name, settings)
        for step in (bare, own, bare, own):  # warm-up
            step()
        ratios, seconds = [], []
        for _ in range(given.rounds):
            before, took, after = clock(bare), clock(own), clock(bare)
            ratios.append(took / ((before + after) / 2))
            seconds.append((before + after) / 2)
        print(f"{name}: bound {statistics.median(seconds):.3f} s")
        passes = f"{learned} with gradient" + (f", {fixed} without" if fixed else "")
        bare_parts = "the bare backbone" + BEHIND.get(name, "")
        row(f"a step of {name}", f"{bare_parts}, batches: {passes}", ratios, goal="≤ 1.06")


if __name__ == "__main__":
    main()
