"""How cost grows: a training step with the size of the views, the batch, the queue, negatives, α, spaces; loading; arithmetic.

    python benchmarks/growth.py [--rounds 5] [--only size batch …]

A step of MoCo (resnet-tiny at 32 px, batch 64, one thread), each curve over its first point, in turns. The rows say what a run of
another size costs relative to one that was timed. `flops` counts the arithmetic of steps of ResNet-50 at 224 px, and `loading`
times photographs on their way to two views: from both, docs/growth.md extrapolates to ImageNet.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cuewise.config import merge
from cuewise.data import Loader, open_data
from cuewise.memory import keep_freed
from cuewise.train.cost import flops
from cuewise.views import RECIPES, View, Views
from first_batch import photographs
from row import row
from steps import clock, training_step

BASE: dict[str, Any] = {
    "data": ["shapes?n=512&size=64"],
    "method": "moco",
    "model": "cuewise/resnet-tiny?width=16",
    "size": 32,
    "batch_size": 64,
    "moco": {"queue": 1024, "momentum": 0.99},
    "workers": "0",
    "epochs": 1000,
}
PATCH = {"negatives": ["patch"], "alpha": [1.0]}
LOOC = {"method": "looc", "looc": {"queue": 1024, "momentum": 0.99}}
LOADING = "photographs of 480 px decoded and made into two MoCo-v2 views at 224 px"
ARITHMETIC: dict[str, dict[str, Any]] = {  # name → settings; the queue's product is of no weight
    "moco": {"method": "moco", "moco": {"queue": 64}},
    "moco with a patch negative": {"method": "moco", "moco": {"queue": 64}, **PATCH},
    "densecl": {"method": "densecl", "densecl": {"queue": 64}},
    "looc, two augmentations left out": {"method": "looc", "looc": {"queue": 64}, "leave_out": ["color", "rotation"]},
    "simclr": {"method": "simclr"},
    "byol": {"method": "byol"},
}  # fmt: skip
OTHERS = ("images", "loading", "flops")
Point = tuple[str, dict[str, Any]]
CURVES: dict[str, tuple[str, list[Point]]] = {
    "size": ("side of the views", [(f"{s} px", {"size": s}) for s in (32, 48, 64, 96)]),
    "batch": ("batch size", [(str(b), {"batch_size": b}) for b in (32, 64, 128, 256)]),
    "queue": (
        "length K of the queue",
        [(f"{k:,}", {"moco": {"queue": k}}) for k in (1024, 4096, 16384, 65536)],
    ),
    "negatives": (
        "patch negatives per image",
        [("none", {}), *((str(n), {**PATCH, "num_negatives": n}) for n in (1, 2, 4))],
    ),
    "alpha": (
        "weight α of one patch negative",
        [(f"{a:g}", {**PATCH, "alpha": [a]}) for a in (0.5, 1.0, 2.0, 5.0)],
    ),
    "spaces": (
        "augmentations left out by LooC, a view and a space each",
        [
            (str(n), {**LOOC, "leave_out": names[:n]})
            for names in [["color", "rotation", "texture"]]
            for n in (1, 2, 3)
        ],
    ),
    "width": (
        "width of the network",
        [(str(w), {"model": f"cuewise/resnet-tiny?width={w}"}) for w in (16, 32, 64)],
    ),
}


def steps(points: list[Point]) -> dict[str, Callable[[], None]]:
    """A warm step of each point."""
    out = {}
    for name, settings in points:
        # settings of one method are refused with another
        base = {k: v for k, v in BASE.items() if k != BASE["method"] or "method" not in settings}
        out[name] = training_step(merge(base, settings))
        out[name]()
        out[name]()
    return out


def curve(name: str, rounds: int) -> None:
    """Seconds per image of each point over those of the first."""
    axis, points = CURVES[name]
    made = steps(points)
    images = {point: merge(BASE, settings)["batch_size"] for point, settings in points}
    times = [{point: clock(step) / images[point] for point, step in made.items()} for _ in range(rounds)]
    first = points[0][0]
    for point in made:
        if point != first:
            row(f"time per image, {axis}: {point}", f"{first}", [t[point] / t[first] for t in times])


def opened(rounds: int) -> None:
    """Seconds to open a zip for the first time, which grow with the number of images."""
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for count in (1000, 4000, 16000):
            places[count] = Path(folder, f"{count}.zip")
            photographs(places[count], count, 32)

        def seconds() -> Iterator[tuple[int, float]]:
            for count, place in places.items():
                os.environ["CUEWISE_CACHE"] = tempfile.mkdtemp(
                    dir=folder
                )  # or its list would be there already
                began = time.perf_counter()
                len(open_data(str(place)))
                yield count, time.perf_counter() - began

        times = [dict(seconds()) for _ in range(rounds)]
    for count in list(places)[1:]:
        row(
            f"time to open a zip for the first time, images: {count:,}",
            "1,000",
            [t[count] / t[1000] for t in times],
        )


def flops_per_image() -> None:
    """Counted, not timed: one step of two images."""
    for name, settings in ARITHMETIC.items():
        base = {"data": ["shapes?n=4&size=64"], "workers": "0", "epochs": 10}
        step = training_step(
            {**base, "model": "torchvision/resnet50", "size": 224, "batch_size": 2, **settings}
        )
        row(f"a step of {name}, ResNet-50 at 224 px", "counted", flops(step) / 2e9, "GFLOP per image")


def loading(rounds: int) -> None:
    """Photographs from a zip to two MoCo-v2 views at 224 px, by the number of loader processes."""
    counts, batch, epochs = (0, 1, 2), 64, 6
    view = replace(RECIPES["moco-v2"], size=224)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "photographs.zip")
        photographs(place, 256, 480)
        data, views = open_data(str(place)), Views([View("query", view), View("key", view)])

        def seconds(workers: int) -> float:
            """Per image, from the second epoch on: by then all processes are there."""
            batches = Loader(data, views, batch_size=batch, seed=0, workers=workers).batches(epochs=epochs)
            for _ in range(len(data) // batch):
                next(batches)
            began = time.perf_counter()
            images = sum(len(b.index) for b in batches)
            return (time.perf_counter() - began) / images

        times = [{w: seconds(w) for w in counts} for _ in range(rounds)]
    for workers in counts[1:]:
        row(f"time per image, loader processes: {workers}", "0", [t[workers] / t[0] for t in times])
    row(LOADING, "one core", [1 / t[0] for t in times], "images/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=[*CURVES, *OTHERS], default=[*CURVES, *OTHERS])
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed()
    print(json.dumps({"base": BASE}))
    for name in given.only:
        if name == "images":
            opened(given.rounds)
        elif name == "loading":
            loading(given.rounds)
        elif name == "flops":
            flops_per_image()
        else:
            curve(name, given.rounds)


if __name__ == "__main__":
    main()
