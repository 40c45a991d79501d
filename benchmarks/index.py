"""Peak memory of the file index: a million names (simulated listing), and 100,000 real files.

    python benchmarks/index.py [--names 1000000] [--files 100000]

A million files take long to create, so for the first rows only the operating system is played: `os.scandir` yields
the names, in no order, and the look at each file's first bytes is left out; walking, sorting, labelling, hashing and
storing are the real ones. The second kind of row lists files that lie on disk, each of which is opened. Each case has a
process of its own; its peak is counted above what the imports take (from /proc: Linux only). Goal: 200 MB for a million.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from row import row

GOAL = 200  # MB for a million names
PRIME = 1_000_003  # steps of 7919 modulo it visit every number once, in no order


class Entry:
    """What os.scandir gives."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def is_dir(self, **_: bool) -> bool:
        return False


def play_listing(root: Path, names: int, folders: int) -> None:
    """Let os.scandir find `names` files, all in root or spread over class folders (which do exist)."""
    import cuewise.data.folder as folder

    real = os.scandir
    for k in range(folders if folders > 1 else 0):
        (root / f"n{k:08d}").mkdir()

    @contextmanager
    def scandir(path: bytes) -> Iterator[Iterator[Entry] | os._ScandirIterator[bytes]]:
        inner = os.fsencode(root) != path
        if folders > 1 and not inner:
            with real(path) as found:
                yield found
            return
        own = os.path.basename(path) if inner else b"n01440764"
        each = names // folders
        yield (Entry(b"%s_%d.JPEG" % (own, (k * 7919) % PRIME)) for k in range(each))

    folder.os.scandir = scandir  # type: ignore[attr-defined]
    folder.check_file = lambda path: None


def write_files(root: Path, count: int, each: int = 1000) -> None:
    """Real images of a few hundred bytes, `each` to a class folder."""
    data = cv2.imencode(".png", np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8))[
        1
    ].tobytes()
    for k in range(count):
        if k % each == 0:
            (root / f"n{k // each:08d}").mkdir()
        (root / f"n{k // each:08d}" / f"{(k * 7919) % PRIME}.png").write_bytes(data)


def measure(root: str) -> tuple[int, float]:
    """How many images the index has, and its peak in MB above what the process holds before; the cache is empty."""
    from cuewise.data import open_data

    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before = held("VmRSS")
    data = open_data(root)
    return len(data), held("VmHWM") - before


def held(what: str) -> float:
    """VmRSS: memory that this process holds now; VmHWM: the most it held. MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) * 1024 / 1e6


def in_a_process(place: Path, *words: str) -> tuple[int, float]:
    command = [sys.executable, __file__, "--child", str(place), *words]
    environment = {**os.environ, "CUEWISE_CACHE": str(place.parent / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    count, peak = done.stdout.split()
    return int(count), float(peak)


def report(what: str, count: int, peak: float) -> None:
    bound = GOAL * count / 1e6
    print(
        f"{what}, {count:,} images: {peak:.0f} MB above the imports, {1e6 * peak / count:.0f} bytes per image"
    )
    row(
        f"file index of {count:,} images, {what}, peak",
        f"{bound:.0f} MB",
        peak,
        "MB",
        f"≤ {bound:.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", type=int, default=1_000_000, help="of the simulated listing")
    parser.add_argument("--files", type=int, default=100_000, help="real files to create")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folders", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        if chosen.folders:
            play_listing(Path(chosen.child), chosen.names, chosen.folders)
        print(*measure(chosen.child))
        return
    for folders, what in ((1000, "simulated listing, 1,000 folders"), (1, "simulated listing, one folder")):
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "set").mkdir()
            words = ("--names", str(chosen.names), "--folders", str(folders))
            report(what, *in_a_process(Path(place) / "set", *words))
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "set").mkdir()
        write_files(Path(place) / "set", chosen.files)
        report("real files", *in_a_process(Path(place) / "set"))


if __name__ == "__main__":
    main()
