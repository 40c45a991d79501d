"""What an audit costs beyond its parts, and how long a whole one takes.

    python benchmarks/audit.py [rounds] [--full]

First: the 75 counted corruptions of images of 96 pixels through a ResNet-18, as the audit does it (read, decode, corrupt in
worker processes, forward), against the forward passes of as many views plus the corruption kernels, both alone and in this
process. Ratios are medians over rounds, in turn. `--full`: the time of every audit on 2,000 test images of 96 pixels, with
the default limit and without one: 257,280 views, which take what as many forward passes take. Needs idle cores; it uses all
of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import cv2
import numpy as np
import torch

from cuewise.audits.answerer import Answerer
from cuewise.audits.change import Change, change
from cuewise.audits.engine import FORWARD, Engine, Viewer, copies
from cuewise.cues.corruptions import CORRUPTIONS, SEVERITIES, variants
from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.embed import evaluating
from cuewise.probes import LinearProbe
from row import row

MODEL, SIDE, IMAGES = "torchvision/resnet18", 96, 48
COUNTED = [c.name for c in CORRUPTIONS.values() if c.in_mce]
CHANGES: tuple[Change, ...] = tuple(
    change("corrupted", corruption=c, severity=s) for c in COUNTED for s in SEVERITIES
)


def write_photos(folder: Path, count: int, classes: int = 10, seed: int = 0) -> Path:
    """Coloured 1/f noise in class folders, JPEG quality 92."""
    rng = np.random.default_rng(seed)
    scales = (3, 6, 12, 24, 48, SIDE)
    for i in range(count):
        layers = [cv2.resize(rng.random((n, n, 3), dtype=np.float32), (SIDE, SIDE)) * 96 / n for n in scales]
        total = np.sum(layers, axis=0) + rng.random((1, 1, 3)) * 10
        image = np.clip((total - total.mean()) / total.std() * 50 + 128, 0, 255).astype(np.uint8)
        place = folder / f"class{i % classes}"
        place.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(place / f"{i:05d}.jpg"), image, [cv2.IMWRITE_JPEG_QUALITY, 92])
    return folder


def answerer(encoder: Encoder) -> Answerer:
    """A probe of ten classes, fitted on noise: what it says does not matter here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, encoder.dim)).astype(np.float32)
    return Answerer(LinearProbe(l2=(1.0,)).fit(X, np.arange(200) % 10), tuple(f"class{k}" for k in range(10)))


def as_audited(encoder: Encoder, data: Dataset) -> float:
    began = time.perf_counter()
    Engine().run(copies("corruption", data, [Viewer(encoder, answerer(encoder), "bench")], CHANGES))
    return time.perf_counter() - began


def forwards(encoder: Encoder, views: int) -> float:
    rng = np.random.default_rng(0)
    batch = torch.from_numpy(rng.integers(0, 256, (FORWARD, SIDE, SIDE, 3), dtype=np.uint8))
    began = time.perf_counter()
    with evaluating(encoder):
        for start in range(0, views, FORWARD):
            encoder(encoder.normalise(batch[: min(FORWARD, views - start)]))
    return time.perf_counter() - began


def kernels(images: list[np.ndarray]) -> float:
    began = time.perf_counter()
    for i, image in enumerate(images):
        for _ in variants(image, seed=0, name=str(i), scale_to_image=True):
            pass
    return time.perf_counter() - began


def corruption(rounds: int, folder: Path) -> None:
    data = open_data(str(write_photos(folder / "photos", IMAGES)))
    images = [data.image(i) for i in range(len(data))]
    encoder = load_encoder(MODEL, size=SIDE)
    kernels(images[:2])
    forwards(encoder, FORWARD)
    as_audited(encoder, data.select(np.arange(min(4, len(data)))))
    ratios = []
    for _ in range(rounds):
        whole, f, k = as_audited(encoder, data), forwards(encoder, len(CHANGES) * len(data)), kernels(images)
        ratios.append(whole / (f + k))
        print(f"audit {whole:.1f} s, forwards {f:.1f} s, kernels {k:.1f} s: {ratios[-1]:.2f} ×", flush=True)
    row(
        "corruption audit, 75 variants, ResNet-18, 96 px",
        "forwards + kernels alone",
        ratios,
        "× the time",
    )


def full(folder: Path) -> None:
    train, test = (write_photos(folder / name, 2000, seed=s) for name, s in (("train", 1), ("test", 2)))
    command = [sys.executable, "-m", "cuewise", "audit", MODEL, "--size", str(SIDE), "--train", str(train)]
    command += ["--test", str(test)]
    for name, more, goal in (
        ("changed copies of 200 of them (the default)", [], ""),
        ("changed copies of all (`--limit 0`)", ["--limit", "0"], "≤ 6"),
    ):
        began = time.perf_counter()
        subprocess.run([*command, *more, "--out", str(folder / f"audit{len(more)}")], check=True)
        minutes = (time.perf_counter() - began) / 60
        row(f"every audit, ResNet-18, 2,000 test images of 96 px, {name}", "–", minutes, "min", goal)


def main() -> None:
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    with tempfile.TemporaryDirectory() as place:
        corruption(numbers[0] if numbers else 5, Path(place))
        if "--full" in sys.argv:
            full(Path(place))


if __name__ == "__main__":
    main()
