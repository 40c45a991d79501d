"""Features of a data set: every readable image once, in order, in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from cuewise.data import Dataset, Sample, Shown, Transform, auto_workers, ordered
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.trial import in_evaluation_mode as in_evaluation_mode
from cuewise.errors import UserError
from cuewise.progress import Progress
from cuewise.views import center

Pixels = NDArray[np.uint8]


@dataclass
class Embeddings:
    """features N×D (float32), index N (position in the data set), labels N (−1 where there is none), skipped files."""

    features: NDArray[np.float32]
    index: NDArray[np.int64]
    labels: NDArray[np.int64]
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class CenterView:
    """Picklable evaluation view; `change` is an image → image function applied to the view."""

    size: int
    change: Callable[[Pixels], Pixels] | None = None
    interpolation: str = "bilinear"

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        view = evaluation_view(sample.image, self.size, self.interpolation)
        return Shown({"image": view if self.change is None else self.change(view)})

    def warm_up(self) -> None:
        """Compile what `center` needs."""
        center(np.zeros((96, 80, 3), np.uint8), self.size)


def evaluation_view(image: Pixels, size: int, interpolation: str = "bilinear") -> Pixels:
    """The central size×size as `center` cuts it, resized with the filter that the weights were trained with."""
    if interpolation != "bicubic":
        return center(image, size)
    height, width = image.shape[:2]
    short = round(size * 256 / 224) if min(height, width) > size else size
    h = short if height <= width else int(short * height / width)
    w = short if width <= height else int(short * width / height)
    resized = np.asarray(Image.fromarray(image).resize((w, h), Image.Resampling.BICUBIC))
    top, left = round((h - size) / 2.0), round((w - size) / 2.0)
    return np.ascontiguousarray(resized[top : top + size, left : left + size])


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, and back to what it was."""
    with in_evaluation_mode(module), torch.inference_mode():
        yield


def embed_dataset(
    encoder: Encoder,
    data: Dataset,
    *,
    forward: Callable[[Tensor], Tensor] | None = None,
    transform: Transform | None = None,
    batch_size: int = 128,
    workers: int | None = None,
    label: str | None = "embedding",
) -> Embeddings:
    """Push every readable image through the encoder (or through `forward`, given normalised images)."""
    device = next(encoder.parameters(), torch.zeros(())).device
    out: list[NDArray[np.float32]] = []
    index: list[NDArray[np.int64]] = []
    skipped: list[tuple[str, str]] = []
    network: Any = forward or encoder
    view = transform or CenterView(encoder.card.size, interpolation=encoder.card.interpolation)
    if workers is None:
        workers = auto_workers() if len(data) > 1000 else 0  # starting processes costs more than a small set
    bar = Progress(len(data), "images", label) if label else None
    with evaluating(encoder):
        for batch in ordered(data, view, batch_size=batch_size, workers=workers):
            x = encoder.normalise(batch.views["image"].to(device))
            out.append(network(x).float().cpu().numpy())
            index.append(batch.index.numpy())
            skipped += batch.skipped
            if bar:
                bar.add(len(batch.index))
    if bar:
        bar.__exit__(None, None, None)
    if not out:
        raise UserError("no image could be read: see the list of skipped files")
    where = np.concatenate(index)
    labels = data.labels[where] if data.labels is not None else np.full(len(where), -1)
    return Embeddings(np.concatenate(out), where, labels.astype(np.int64), skipped)
