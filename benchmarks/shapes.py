"""Images per second of the embedded shapes on one core, and against Pillow drawing the same outlines.

    NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/shapes.py [rounds]

Pillow gets the silhouettes only (no texture, no background, no bend): the polygons of each pose on a canvas four times
as large, reduced by a box filter. Both run in turn in one process; rates and ratios are medians over rounds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from PIL import Image, ImageDraw

from cuewise.data.shapes import SPLITS, ShapeSet
from cuewise.data.shapes.outlines import HALF, outlines
from row import row

COUNT = 512


def pillow(made: ShapeSet, rng: np.random.Generator) -> None:
    """COUNT silhouettes of made's labels in random poses, with 4 × 4 supersampling."""
    side = 4 * made.size
    parts = outlines()
    for label in made.labels[:COUNT]:
        canvas = Image.new("L", (side, side), 255)
        pen = ImageDraw.Draw(canvas)
        angle, share = rng.uniform(-0.2, 0.2), rng.uniform(0.66, 0.88)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, s], [-s, c]]) * (share * side / (2 * HALF))
        for part in parts[label]:
            pen.polygon((part.points @ turn + side / 2).ravel().tolist(), fill=0 if part.adds else 255)
        np.asarray(canvas.reduce(4).convert("RGB"))


def rate(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return COUNT / (time.perf_counter() - start)


def main(rounds: int) -> None:
    everything, rng = np.arange(COUNT), np.random.default_rng(0)
    for size in (32, 64, 128):
        print(f"{size} px, images/s, median of {rounds} rounds of {COUNT}")
        sets = {split: ShapeSet(split, n=COUNT, size=size) for split in SPLITS}
        for made in sets.values():
            made.batch([0])  # compiled before the clock starts
        rows: dict[str, list[float]] = {split: [] for split in SPLITS}
        peers: list[float] = []
        for _ in range(rounds):
            for split, made in sets.items():
                rows[split].append(rate(partial(made.batch, everything)))
            peers.append(rate(partial(pillow, sets["silhouette"], rng)))
        for split, rates in rows.items():
            print(f"  {split:13} {np.median(rates):8.0f}")
        print(f"  {'Pillow':13} {np.median(peers):8.0f}  silhouettes, 4 × 4 supersampling")
        if size == 64:
            row("the embedded shapes at 64 px, one core", "–", rows["aligned"], "images/s")
        for split in ("silhouette", "aligned"):
            ratio = np.median(np.array(rows[split]) / np.array(peers))
            print(f"  {split} / Pillow's silhouettes = {ratio:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
