"""Is a synthesised texture as good as the original program's? Fidelity and coverage on the same pairs of patches.

    python benchmarks/texture_quality.py REFERENCE.zip [--pairs 12] [--seed 0]

REFERENCE.zip holds NN_a.png and NN_b.png (two source patches) and NN_original.png (what EmbarkStudios' texture-synthesis made of
them). With patches of side w (7 and 15) and the RMS distance in grey levels over all channels:
  fidelity   mean over the output's patches (stride 4) of the distance to the nearest of all source patches
  coverage   mean over every 9th source patch of the distance to the nearest of the output's patches (stride 2)
Lower is better in both: a high fidelity has structure that no source has, a high coverage misses parts of the sources.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from cuewise.cues.texture import PUBLISHED, Search, synthesize
from cuewise.data import decode
from row import row

SIDES = (7, 15)
CHUNK = 512  # patches compared at once: 512 × 16,200 distances are 33 MB
PRESETS = {"cuewise": Search(), "cuewise, as published": PUBLISHED}
ORIGINAL = "original"

Pixels = NDArray[np.uint8]
Patches = NDArray[np.float32]  # N × 3w²


def patches(image: Pixels, side: int, stride: int = 1) -> Patches:
    """All patches of an image in reading order, about zero, which keeps the products below exact enough."""
    windows = sliding_window_view(image, (side, side), axis=(0, 1))[::stride, ::stride]
    return windows.reshape(-1, 3 * side * side).astype(np.float32) - 128


def mean_nearest(some: Patches, others: Patches) -> float:
    """Mean over `some` of the RMS distance to the nearest of `others`."""
    squares = (others**2).sum(1)
    found = []
    for start in range(0, len(some), CHUNK):
        part = some[start : start + CHUNK]
        nearest = (squares - 2 * part @ others.T).argmin(1)  # |o − s|² without the term that all share
        found.append(np.sqrt(((part - others[nearest]).astype(np.float64) ** 2).mean(1)))
    return float(np.concatenate(found).mean())


def quality(sources: list[Pixels], output: Pixels) -> list[float]:
    """fidelity and coverage for each side: [f7, f15, c7, c15]."""
    fidelity, coverage = [], []
    for side in SIDES:
        own = np.concatenate([patches(source, side) for source in sources])
        fidelity.append(mean_nearest(patches(output, side, 4), own))
        coverage.append(mean_nearest(own[::9], patches(output, side, 2)))
    return fidelity + coverage


def read_pairs(file: Path, count: int) -> list[tuple[list[Pixels], Pixels]]:
    """(source patches, the original's output) of the first pairs."""
    with zipfile.ZipFile(file) as archive:
        stems = sorted(
            n.removesuffix("_original.png") for n in archive.namelist() if n.endswith("_original.png")
        )

        def image(name: str) -> Pixels:
            return decode(archive.read(name), name)

        return [
            ([image(f"{s}_a.png"), image(f"{s}_b.png")], image(f"{s}_original.png")) for s in stems[:count]
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reference", type=Path, help="the zip of pairs and reference textures")
    parser.add_argument("--pairs", type=int, default=12, help="only the first pairs")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    pairs = read_pairs(chosen.reference, chosen.pairs)
    values: dict[str, list[list[float]]] = {name: [] for name in (ORIGINAL, *PRESETS)}
    for number, (sources, original) in enumerate(pairs):
        values[ORIGINAL].append(quality(sources, original))
        for name, search in PRESETS.items():
            rng = np.random.default_rng((chosen.seed, number))
            made = synthesize(sources, (original.shape[0], original.shape[1]), rng=rng, search=search)
            values[name].append(quality(sources, made))
    means = {name: np.mean(found, axis=0) for name, found in values.items()}
    print(f"{len(pairs)} pairs, grey levels, lower is better")
    print("| texture | fidelity 7×7 | fidelity 15×15 | coverage 7×7 | coverage 15×15 |")
    print("| --- | --- | --- | --- | --- |")
    for name, mean in means.items():
        print(f"| {name} | " + " | ".join(f"{v:.1f}" for v in mean) + " |")
    for name in PRESETS:
        for what, ratio in zip(
            ("fidelity 7×7", "fidelity 15×15", "coverage 7×7", "coverage 15×15"),
            means[name] / means[ORIGINAL],
        ):
            row(f"texture quality, {name}, {what}", "the Rust original", ratio, goal="≤ 1")


if __name__ == "__main__":
    main()
