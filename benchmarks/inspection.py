"""`cuewise inspect` on 25,000 JPEGs of 64 pixels in 50 classes: all clues, copies, the page. Goal: 120 s on 2 cores.

    python benchmarks/inspection.py [--images 25000] [--classes 50] [--workers 2] [--data DIR]

The images are drawn (smooth random colours in JPEG), unless --data names a set. Phases are timed apart: reading and
measuring grows with the images, judging with images × clues, the search for copies with images².
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from row import row

GOAL = 120.0  # seconds for 25,000 images


def draw(file: Path, images: int, classes: int) -> None:
    """A zip of JPEGs, one folder per class."""
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(images):
            cells = rng.integers(0, 256, (8, 8, 3), np.uint8)
            image = Image.fromarray(cells).resize((64, 64), Image.Resampling.BICUBIC)
            out = io.BytesIO()
            image.save(out, "JPEG", quality=85)
            archive.writestr(f"class{i % classes:03d}/{i}.jpg", out.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=25_000)
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", help="a set of one's own")
    given = parser.parse_args()

    import cuewise
    from cuewise.data import open_data
    from cuewise.inspection.clue import CLUES
    from cuewise.inspection.copies import copies_within, groups_of
    from cuewise.inspection.gather import gather
    from cuewise.inspection.judge import judge
    from cuewise.inspection.run import labels_of

    with tempfile.TemporaryDirectory() as folder:
        spec = given.data or f"{folder}/images.zip"
        if not given.data:
            draw(Path(spec), given.images, given.classes)
        begin = time.perf_counter()
        cuewise.inspect(spec, out=Path(folder) / "out", workers=given.workers)
        whole = time.perf_counter() - begin
        data = open_data(spec)
        times = [time.perf_counter()]
        found = gather(data, [clue() for clue in CLUES.all().values()], "images", given.workers)
        times.append(time.perf_counter())
        copies = copies_within(found)
        times.append(time.perf_counter())
        groups, labels = groups_of(len(found.index), copies), labels_of(data, found)[0]
        for name, values in found.clues.items():
            judge(values, labels, groups, name)
        times.append(time.perf_counter())
    parts = [
        f"{what} {b - a:.1f} s" for what, a, b in zip(("reading", "copies", "judging"), times, times[1:])
    ]
    count = len(found.index)
    note = f"{', '.join(parts)}; {given.workers} workers"
    row(f"inspect, {count:,} images", "–", whole, "s", f"≤ {GOAL * count / 25_000:.0f}", note)


if __name__ == "__main__":
    main()
