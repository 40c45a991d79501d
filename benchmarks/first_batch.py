"""Seconds from the start of `cuewise pretrain`, and from its banner, to the first batch: without and with compiled kernels.

python benchmarks/first_batch.py [--runs 3]        the first run has an empty cache, the second the kernels of the first
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from row import row

POLL = 0.01  # seconds between two looks


def photographs(file: Path, count: int = 2000, side: int = 96) -> None:
    """A zip of JPEGs with structure at several scales."""
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(count):
            coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((side, side))
            pixels = np.clip(np.asarray(coarse) + rng.normal(0, 8, (side, side, 3)), 0, 255).astype(np.uint8)
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
            archive.writestr(f"{'ab'[i % 2]}/{i:05d}.jpg", buffer.getvalue())


def measured(data: str, out: Path, cache: Path) -> tuple[float, float]:
    """(start → banner, start → first batch) of one run; views.png is written when the first batch comes."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {
        "CUEWISE_CACHE": str(cache)
    }
    command = [sys.executable, "-m", "cuewise", "pretrain", data, "--out", str(out), "--steps", "1"]
    command += ["--size", "32", "--model", "cuewise/resnet-tiny"]
    start, banner = time.perf_counter(), 0.0
    with open(out.with_suffix(".log"), "w+") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        while process.poll() is None and not (out / "views.png").exists():
            if not banner and "images of" in Path(log.name).read_text():
                banner = time.perf_counter() - start
            time.sleep(POLL)
        batch = time.perf_counter() - start
        if process.wait() or not banner:
            sys.exit(Path(log.name).read_text())
    return banner, batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photographs(Path(folder, "photographs.zip"))
        sets = {"shapes": "shapes", "a zip of 2,000 JPEGs": str(Path(folder, "photographs.zip"))}
        for name, data in sets.items():
            times: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": []}
            for k in range(given.runs):
                cache = Path(folder, f"cache-{name[:6]}-{k}")
                for state, found in times.items():
                    found.append(measured(data, Path(folder, f"{state}-{name[:6]}-{k}"), cache))
            for state, found in times.items():
                banner = statistics.median(b for b, _ in found)
                batch = statistics.median(b for _, b in found)
                after = statistics.median(b - a for a, b in found)
                print(
                    f"{name}, {state}: banner after {banner:.1f} s, first batch {batch:.1f} s after the start, "
                    f"{after:.1f} s after the banner"
                )
                goal = "≤ 10" if state == "cold" else "≤ 4"
                what, note = f"first batch, {name}, {state}", f"{after:.1f} s after the banner"
                row(what, "the start of the command", [b for _, b in found], "s", goal, note)


if __name__ == "__main__":
    main()
