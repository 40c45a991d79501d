"""`cuewise pretrain` from a zip of 64 px JPEGs, data included: images/s over what the bare backbone could do.

    python benchmarks/pretrain.py [--images 1280] [--rounds 3] [--workers 0]

The bound (query forward + backward, key forward of the bare backbone) is timed before and after each run.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
import zipfile
from pathlib import Path

import torch
from PIL import Image

from cuewise import pretrain
from cuewise.data.shapes import ShapeSet
from cuewise.train.log import read_metrics
from row import row
from step import BATCH, QUEUE, bound, clock


def write_zip(file: Path, images: int) -> None:
    source = ShapeSet.parse(f"shapes?n={images}&size=64")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for i in range(images):
            buffer = io.BytesIO()
            Image.fromarray(source.image(i)).save(buffer, "JPEG", quality=90)
            archive.writestr(f"{i:06d}.jpg", buffer.getvalue())


def one(folder: Path, images: int, number: int, bare: object, workers: str) -> float:
    """Share of the bound that a run reaches, the first two rows left out as warm-up."""
    before = statistics.median(clock(bare) for _ in range(3))  # type: ignore[arg-type]
    out = folder / f"run{number}"
    pretrain(
        str(folder / "images.zip"),
        out=str(out),
        model="torchvision/resnet18",
        size=64,
        batch_size=BATCH,
        epochs=2,
        workers=workers,
        set=[f"moco.queue={QUEUE}", "loop.log_every=5"],
    )
    after = statistics.median(clock(bare) for _ in range(3))  # type: ignore[arg-type]
    rates = [
        r["train/images_per_s"] for r in read_metrics(out / "metrics.jsonl") if "train/images_per_s" in r
    ][2:]
    reached = len(rates) / sum(1 / r for r in rates)
    return reached / (BATCH / ((before + after) / 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="auto", help="of `cuewise pretrain`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CUEWISE_CACHE"] = str(folder / "cache")
        write_zip(folder / "images.zip", args.images)
        bare = bound("resnet18", 64)
        bare()
        shares = [one(folder, args.images, i, bare, args.workers) for i in range(args.rounds)]
    row(
        "`cuewise pretrain` from a zip of JPEGs, ResNet-18 at 64 px",
        "the bare backbone",
        shares,
        "of its rate",
        "≥ 0.95",
    )
    print(f"threads: {torch.get_num_threads()}")
    print(
        f"pretrain from a zip of JPEGs, ResNet-18 at 64 px: {statistics.median(shares):.3f} of the bound ({shares})"
    )


if __name__ == "__main__":
    main()
