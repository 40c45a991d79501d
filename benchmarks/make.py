"""`cuewise make` end to end (read, decode, filter, encode, write): two workers against one.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/make.py [rounds]

JPEGs of 224 pixels, drawn here; both run in turn. Rates are images per second while images are made (reading the list and
compiling kernels happen once, before); the ratio is the median over rounds. Needs two idle cores.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

import cuewise
from row import row

CASES: dict[str, tuple[int, dict[str, Any]]] = {  # images and settings: a few seconds on one worker each
    "gaussian": (1200, {}),
    "anisotropic": (1200, {}),
    "corrupted": (16, {}),
    "quilting": (160, {}),
    "texture": (60, {}),
}


def write_photos(folder: Path, count: int, side: int = 224) -> None:
    """Natural-looking images, coloured 1/f noise, as JPEGs of quality 92."""
    rng = np.random.default_rng(0)
    scales = (4, 8, 16, 32, 64, 128, 224)
    (folder / "class").mkdir(parents=True)
    for i in range(count):
        layers = [cv2.resize(rng.random((n, n, 3), dtype=np.float32), (side, side)) * 256 / n for n in scales]
        total = np.sum(layers, axis=0)
        image = np.clip((total - total.mean()) / total.std() * 50 + 128, 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / "class" / f"{i:04d}.jpg"), image, [cv2.IMWRITE_JPEG_QUALITY, 92])


def rate(kind: str, folder: Path, workers: int) -> float:
    """Images per second."""
    count, settings = CASES[kind]
    with tempfile.TemporaryDirectory(dir=folder.parent) as out, contextlib.redirect_stderr(io.StringIO()):
        result = cuewise.make(kind, folder, Path(out) / "set", set=settings, limit=count, workers=workers)
    return float(result["rate"])


def main(rounds: int) -> None:
    print("| make, 224 px | 1 worker, images/s | 2 workers, images/s | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "photos"
        write_photos(folder, max(count for count, _ in CASES.values()))
        for kind in CASES:
            rate(kind, folder, 2)  # files into the cache, kernels compiled
            pairs = np.array([(rate(kind, folder, 1), rate(kind, folder, 2)) for _ in range(rounds)])
            one, two = np.median(pairs, axis=0)
            row(
                f"`cuewise make {kind}`, 2 workers",
                "1 worker",
                pairs[:, 1] / pairs[:, 0],
                goal="≥ 1.7",
            )
            print(
                f"| {kind} | {one:.1f} | {two:.1f} | {np.median(pairs[:, 1] / pairs[:, 0]):.2f} |", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
