"""Cue operators against their peers, one thread, at 224 px: `NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/cues.py`.

All candidates of a row run in turn, several rounds, after a warm-up; a ratio is the median over rounds of the two times
of the same round. A unit is the time of one 2048³ float32 matrix product in the same round. Peers: OpenCV, and MedPy
(`pip install medpy`; its rows are left out without it).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

# ruff: noqa: E402 — the thread counts must be set before the libraries start
for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import cv2
import numpy as np
import torch

from cuewise.cues.bilateral import bilateral
from cuewise.cues.diffusion import diffuse
from cuewise.cues.quilting import quilt
from cuewise.cues.texture import PUBLISHED, Search, synthesize
from cuewise.cues.texture_patches import extract_patches
from row import row

try:
    from medpy.filter.smoothing import anisotropic_diffusion
except ImportError:
    anisotropic_diffusion = None

Times = dict[str, list[float]]


def photograph(side: int = 224, seed: int = 0) -> np.ndarray:
    """Regions, shading, stripes and noise in about the proportions of a photograph."""
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(rng.uniform(0, 255, (7, 7, 3)), (side, side), interpolation=cv2.INTER_CUBIC)
    regions = cv2.resize(rng.uniform(-70, 70, (5, 5, 3)), (side, side), interpolation=cv2.INTER_NEAREST)
    y, x = np.mgrid[:side, :side]
    stripes = 18 * np.sin(x / 3 + np.sin(y / 11))[..., None]
    return np.clip(coarse + regions + stripes + rng.normal(0, 6, coarse.shape), 0, 255).astype(np.uint8)


CLOCKS = {
    "wall": time.perf_counter,
    "cpu": time.thread_time,
}  # cpu: fair on a busy machine, all is one thread
clock = CLOCKS["wall"]


def race(runners: dict[str, Callable[[], Any]], rounds: int) -> Times:
    """Seconds of each runner in each round, in turn."""
    for run in runners.values():
        run()
    times: Times = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            start = clock()
            run()
            times[name].append(clock() - start)
    return times


def report(title: str, times: Times, anchor: str, note: str = "") -> None:
    """Median milliseconds, and median ratio anchor / runner and its inverse."""
    print(f"\n{title}")
    for name, seconds in times.items():
        ratio = np.median(np.array(times[anchor]) / seconds)
        print(
            f"  {name:<34} {1e3 * np.median(seconds):9.2f} ms   {ratio:8.2f} ×   {1 / ratio:8.4f} of the anchor"
        )
    if note:
        print(f"  {note}")


def diffusion_rows(image: np.ndarray, rounds: int) -> None:
    """Perona–Malik, 20 steps, κ = 20, γ = 0.1, grey levels 0–255."""
    levels = image.astype(np.float32)
    if anisotropic_diffusion is None:
        print("\nDiffusion: MedPy is not installed (pip install medpy), no peer to compare with")
        return
    planes = [np.ascontiguousarray(levels[..., c]) for c in range(3)]
    for option in (1, 2, 3):

        def peer(option: int = option) -> np.ndarray:
            settings = {"niter": 20, "kappa": 20, "gamma": 0.1, "option": option}
            return np.stack([anisotropic_diffusion(plane, **settings) for plane in planes], -1)

        def ours(option: int = option) -> np.ndarray:
            return diffuse(levels, 20, 20.0, 0.1, option)

        gap = np.abs(peer() - ours()).max()
        times = race({"MedPy, per channel": peer, "cuewise": ours}, rounds)
        report(f"Diffusion, option {option}", times, "MedPy, per channel", f"largest difference {gap:.1e}")
        ratios = np.array(times["MedPy, per channel"]) / times["cuewise"]
        name = {1: "Perona–Malik (exponential)", 2: "Perona–Malik (rational)", 3: "robust (Tukey)"}[option]
        goal, note = "≥ 15" if option == 1 else "", f"{gap:.0e} apart"
        row(f"{name} diffusion, 224 px, 20 steps", "MedPy per channel", ratios, goal=goal, note=note)
    times = race(
        {
            "MedPy, H×W×3": lambda: anisotropic_diffusion(levels, niter=20, kappa=20, gamma=0.1, option=1),
            "cuewise, medpy3d": lambda: diffuse(levels, 20, 20.0, 0.1, 1, "medpy3d"),
        },
        max(3, rounds // 2),
    )
    report("Diffusion across channels, option 1", times, "MedPy, H×W×3")


def bilateral_row(image: np.ndarray, rounds: int) -> None:
    """d = 9, σ = 75."""
    times = race(
        {"OpenCV": lambda: cv2.bilateralFilter(image, 9, 75, 75), "cuewise": lambda: bilateral(image)}, rounds
    )
    gap = np.abs(cv2.bilateralFilter(image, 9, 75, 75).astype(int) - bilateral(image)).max()
    report("Bilateral, d = 9, σ = 75", times, "OpenCV", f"largest difference {gap} grey levels")
    ratios = np.array(times["OpenCV"]) / times["cuewise"]
    row("bilateral filter, 224 px, d = 9", "OpenCV", ratios, goal="≥ 3", note=f"≤ {gap} grey level apart")


def texture_rows(image: np.ndarray, rounds: int) -> None:
    """224 px from two 96 px patches."""
    matrix = torch.randn(2048, 2048)
    examples = extract_patches(image, np.random.default_rng(0)).examples

    def texture(search: Search) -> Callable[[], Any]:
        return lambda: synthesize(examples, (224, 224), rng=np.random.default_rng(0), search=search)

    runners = {
        "unit (2048³ product)": lambda: matrix @ matrix,
        "texture": texture(Search()),
        "texture, as published": texture(PUBLISHED),
        "quilting": lambda: quilt(examples, (224, 224), rng=np.random.default_rng(0)),
    }
    times = race(runners, rounds)
    report("Textures from two 96 px patches", times, "unit (2048³ product)")
    for name in ("texture", "texture, as published", "quilting"):
        units = np.array(times[name]) / times["unit (2048³ product)"]
        against = "one 2048³ float32 product"
        against += "" if name == "quilting" else " (the Rust original: 18)"
        row(f"{name}: a 224 px image", against, units, "units", "≤ 0.6" if name == "texture" else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", help="a photograph to use instead of the generated one")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    chosen = parser.parse_args()
    global clock
    clock = CLOCKS[chosen.clock]
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    image = photograph()
    if chosen.image:
        image = np.ascontiguousarray(cv2.resize(np.asarray(cv2.imread(chosen.image)), (224, 224))[..., ::-1])
    diffusion_rows(image, chosen.rounds)
    bilateral_row(image, 2 * chosen.rounds)
    texture_rows(image, max(3, chosen.rounds // 3))


if __name__ == "__main__":
    main()
