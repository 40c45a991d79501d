"""Two MoCo-v2 views at 224 from JPEG bytes, and a patch negative: cuewise against torchvision on Pillow.

    NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/views.py [--rounds 7] [--images 48] [--folder PHOTOS]

All candidates run in turn in one process, round by round, and nothing made is kept; a ratio is the median over rounds of
(peer's time / our time) of the same round. The photographs are made by code (about 500×375, 95 kB each) unless a folder of
JPEGs is given. `--loader` also times two loader processes each.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import PIL
import torch
from PIL import Image, ImageFilter
from torchvision import transforms as T

from cuewise.cues import patches
from cuewise.data import Loader, Sample, SmallestCrop, decode, open_data
from cuewise.views import RECIPES, View, Views
from cuewise.views.smallest import smallest_crops
from row import row

SIZE = 224
RECIPE = RECIPES["moco-v2"]
TWO_VIEWS = Views([View("query", RECIPE), View("key", RECIPE)])


def photographs(count: int, rng: np.random.Generator, side: int = 500) -> list[bytes]:
    """JPEGs with the spectrum, the size and the weight of ordinary photographs, about `side` pixels long."""
    made = []
    for _ in range(count):
        long = int(rng.integers(side * 24 // 25, side * 26 // 25))
        height, width = (long * 3 // 4, long) if rng.random() < 0.75 else (long, long * 3 // 4)
        radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]) + 1 / long
        planes = []
        for _ in range(4):  # a shared grey plane and three of colour
            phase = rng.normal(size=radius.shape) + 1j * rng.normal(size=radius.shape)
            plane = np.fft.irfft2(phase / radius**1.25, s=(height, width))
            planes.append(plane / plane.std())
        pixels = np.stack([128 + 45 * planes[0] + 22 * p for p in planes[1:]], -1)
        pixels += rng.normal(0, 4, (height, width, 1))  # grain
        stream = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=88)
        made.append(stream.getvalue())
    return made


class PillowBlur:
    """The published blur: Pillow's, with a radius uniform in 0.1..2."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


class Peer:
    """The published pipeline, torchvision on Pillow: bytes → two views."""

    def __init__(self, tensors: bool) -> None:
        steps: list[Any] = [
            T.RandomResizedCrop(SIZE, scale=(0.2, 1.0)),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            T.RandomGrayscale(p=0.2),
            T.RandomApply([PillowBlur()], p=0.5),
            T.RandomHorizontalFlip(),
        ]
        if tensors:
            steps += [T.ToTensor(), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
        else:
            steps.append(np.array)
        self.view = T.Compose(steps)

    def __call__(self, data: bytes) -> tuple[Any, Any]:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return self.view(image), self.view(image)


class PeerFiles(torch.utils.data.Dataset[Any]):
    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths, self.peer = list(paths), Peer(tensors=True)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        return self.peer(self.paths[i].read_bytes())


def loop_negative(query: torch.Tensor, low: int = 16, high: int = 72) -> torch.Tensor:
    """The negative as first published: a Python loop over patches of the normalised C×S×S query."""
    channels, side = query.shape[0], query.shape[1]
    d = random.randint(low, high)
    n = side // d + 1
    canvas = torch.zeros(channels, n * d, n * d)
    for i in range(n):
        for j in range(n):
            y, x = np.random.randint(0, side - d, 2)  # noqa: NPY002  (the peer's own way of drawing)
            canvas[:, i * d : (i + 1) * d, j * d : (j + 1) * d] = query[:, y : y + d, x : x + d]
    return canvas[:, :side, :side].contiguous()


def compare(
    candidates: dict[str, Callable[[], object]], rounds: int, per_round: int
) -> dict[str, list[float]]:
    """Seconds per item of each candidate, round by round, all in turn."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):  # the first round warms up and compiles
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append((time.perf_counter() - start) / per_round)
    return times


def show(title: str, times: dict[str, list[float]], peer: str, unit: float = 1e3, word: str = "ms") -> None:
    print(f"\n{title}")
    for name, seconds in times.items():
        ratios = [a / b for a, b in zip(times[peer], seconds)]
        print(
            f"  {name:<52} {statistics.median(seconds) * unit:9.2f} {word}   {statistics.median(ratios):6.2f} ×"
        )


def views_table(photos: list[bytes], rounds: int) -> None:
    rng = np.random.default_rng(0)
    plain, tensors = Peer(tensors=False), Peer(tensors=True)

    def ours() -> None:
        for i, data in enumerate(photos):
            TWO_VIEWS(Sample(decode(data, "photo"), i), rng)

    def ours_decoded() -> None:
        for i, image in enumerate(decoded):
            TWO_VIEWS(Sample(image, i), rng)

    decoded = [decode(data, "photo") for data in photos]
    candidates: dict[str, Callable[[], object]] = {
        "torchvision on Pillow, uint8 out": lambda: [len(plain(data)) for data in photos],
        "torchvision on Pillow, normalised float out": lambda: [len(tensors(data)) for data in photos],
        "cuewise, uint8 out": ours,
        "cuewise, image already decoded": ours_decoded,
        "decoding alone (cuewise)": lambda: [decode(data, "photo").shape for data in photos],
    }
    times = compare(candidates, rounds, len(photos))
    show("decode once + two MoCo-v2 views at 224, one thread", times, "torchvision on Pillow, uint8 out")
    pairs = zip(times["torchvision on Pillow, uint8 out"], times["cuewise, uint8 out"])
    row(
        "two MoCo-v2 views at 224 px from a JPEG, one thread, same pixels",
        "torchvision on Pillow",
        [theirs / ours for theirs, ours in pairs],
        goal="≥ 6.5",
    )


def large_table(photos: list[bytes], rounds: int) -> None:
    """`loop.decode=reduced`: fewer pixels are decoded, as far as no crop gets fewer than its view has."""
    rng = np.random.default_rng(0)
    plain, crops = Peer(tensors=False), smallest_crops(TWO_VIEWS)

    def ours(crops: Sequence[SmallestCrop] = ()) -> None:
        for i, data in enumerate(photos):
            TWO_VIEWS(Sample(decode(data, "photo", crops), i), rng)

    peer = "torchvision on Pillow, uint8 out"
    candidates: dict[str, Callable[[], object]] = {
        peer: lambda: [len(plain(data)) for data in photos],
        "cuewise": ours,
        "cuewise, loop.decode=reduced": lambda: ours(crops),
    }
    times = compare(candidates, rounds, len(photos))
    height, width = decode(photos[0], "photo").shape[:2]
    show(f"decode once + two views at 224 of photographs of {width}×{height}", times, peer)
    for name in list(candidates)[1:]:
        what = f"two MoCo-v2 views at 224 px of a photograph of 12 megapixels{name.removeprefix('cuewise')}"
        row(what, "torchvision on Pillow", [a / b for a, b in zip(times[peer], times[name])])


def negative_table(photos: list[bytes], rounds: int) -> None:
    rng = np.random.default_rng(0)
    views = [TWO_VIEWS(Sample(decode(data, "photo")), rng).views["query"] for data in photos]
    tensors = [torch.from_numpy(v).permute(2, 0, 1).float().div(255).contiguous() for v in views]

    def ours() -> None:
        for view in views:
            patches.apply(view, patches.sample(rng, SIZE, SIZE, SIZE))

    def ours_turned() -> None:
        for view in views:
            patches.apply(view, patches.sample(rng, SIZE, SIZE, SIZE, augment=("rot90", "vflip", "hflip")))

    def whole() -> None:
        for i, data in enumerate(photos):
            TWO_VIEWS(Sample(decode(data, "photo"), i), rng)

    candidates: dict[str, Callable[[], object]] = {
        "Python loop over float C×H×W patches": lambda: [loop_negative(x).shape for x in tensors],
        "cuewise, draws included": ours,
        "cuewise, every patch turned and flipped": ours_turned,
        "for comparison: decode + two views": whole,
    }
    times = compare(candidates, rounds, len(photos))
    show(
        "one patch negative at 224, d in 16..72, one thread",
        times,
        "Python loop over float C×H×W patches",
        1e6,
        "µs",
    )
    own, both = times["cuewise, draws included"], times["for comparison: decode + two views"]
    loops = times["Python loop over float C×H×W patches"]
    row("a patch negative at 224 px", "a Python loop over patches", [a / b for a, b in zip(loops, own)])
    shares = [100 * 2 * negative / views for negative, views in zip(own, both)]
    row("a patch negative at 224 px", "one of our views, with its half of the decoding", shares, "%", "≤ 5")


def loader_table(photos: list[bytes], rounds: int, batch: int = 48, batches: int = 12) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i in range(batches * batch):
            paths.append(Path(folder) / f"{i:04d}.jpg")
            paths[-1].write_bytes(photos[i % len(photos)])
        peer = torch.utils.data.DataLoader(PeerFiles(paths), batch, shuffle=True, num_workers=2)
        loader = Loader(open_data(folder), TWO_VIEWS, batch_size=batch, seed=0, workers=2)
        names = "torch DataLoader, torchvision on Pillow, float out", "cuewise Loader, uint8 out"
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            times[names[0]].append(epoch_seconds(peer) / len(paths))
            times[names[1]].append(epoch_seconds(loader.batches()) / len(paths))
    show("two views from files, two loader processes, time on the wall", times, names[0])
    row(
        "the same from files, two loader processes",
        "torch DataLoader, torchvision on Pillow",
        [theirs / ours for theirs, ours in zip(times[names[0]], times[names[1]])],
    )


def epoch_seconds(batches: Iterable[object]) -> float:
    """One epoch on the wall, from starting the processes to the last batch."""
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--folder", type=Path, help="JPEG files to use instead of made ones")
    parser.add_argument("--loader", action="store_true", help="also time two loader processes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.folder:
        files = sorted(p for p in arguments.folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        photos = [p.read_bytes() for p in files[: arguments.images]]
    else:
        photos = photographs(arguments.images, np.random.default_rng(0))
    print(
        f"{len(photos)} JPEGs, mean {sum(map(len, photos)) / len(photos) / 1000:.0f} kB; Pillow {PIL.__version__}"
    )
    views_table(photos, arguments.rounds)
    negative_table(photos, arguments.rounds)
    if not arguments.folder:
        large_table(photographs(4, np.random.default_rng(1), side=4000), arguments.rounds)
    if arguments.loader:
        loader_table(photos, arguments.rounds)


if __name__ == "__main__":
    main()
