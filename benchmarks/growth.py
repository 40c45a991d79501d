"""How the cost of a training step grows: with the size of the images, the batch, the queue, negatives, α, spaces, the data.

    python benchmarks/growth.py [--rounds 5] [--only size batch …]

A step of MoCo (resnet-tiny at 32 px, batch 64, one thread), each curve over its first point, in turns. The rows say what a run of
another size costs relative to one that was timed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from cuewise.config import merge
from cuewise.data import open_data
from cuewise.memory import keep_freed
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
        "augmentations left out (LooC)",
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
        out[name] = training_step(merge(BASE, settings))
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
    """Seconds to open a zip and read its index, which grow with the number of images."""
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for count in (1000, 4000, 16000):
            places[count] = Path(folder, f"{count}.zip")
            photographs(places[count], count, 32)

        def seconds() -> Iterator[tuple[int, float]]:
            for count, place in places.items():
                began = time.perf_counter()
                len(open_data(str(place)))
                yield count, time.perf_counter() - began

        times = [dict(seconds()) for _ in range(rounds)]
    for count in list(places)[1:]:
        row(f"time to open a zip, images: {count:,}", "1,000", [t[count] / t[1000] for t in times])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=[*CURVES, "images"], default=[*CURVES, "images"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed()
    print(json.dumps({"base": BASE}))
    for name in given.only:
        if name == "images":
            opened(given.rounds)
        else:
            curve(name, given.rounds)


if __name__ == "__main__":
    main()
