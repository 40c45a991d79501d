"""Pictures for the report: predicted boxes and masks beside the true ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from cuewise.data.annotations.annotated import VOID

Pixels = NDArray[np.uint8]
SIDE = 240  # of one panel, pixels
SHOWN = 6  # worst images, and as many best ones
PALETTE = (
    (0, 0, 0), (230, 60, 60), (50, 130, 240), (60, 180, 75), (245, 190, 40), (150, 80, 200), (70, 210, 220), (240, 90, 190),
    (170, 220, 60), (250, 150, 110), (0, 128, 128), (140, 90, 40), (128, 128, 0), (90, 90, 200), (200, 120, 160),
)  # fmt: skip


@dataclass(frozen=True)
class Shot:
    """A picture with what to say of it."""

    title: str
    caption: str
    picture: Pixels


def colour(k: int) -> tuple[int, int, int]:
    """Of class k; 0 is the background of a mask."""
    return PALETTE[k] if k < len(PALETTE) else PALETTE[1 + k % (len(PALETTE) - 1)]


def mask_panels(image: Pixels, true: Pixels, predicted: Pixels, background: bool = True) -> Pixels:
    """Image, true and predicted classes; void pixels are grey in both. background: class 0 is one, and black."""
    shown = [np.where(true == VOID, VOID, m).astype(np.uint8) for m in (true, predicted)]
    return side_by_side([image, *(painted(image, m, 0 if background else 1) for m in shown)])


def painted(image: Pixels, mask: Pixels, first: int = 0) -> Pixels:
    """The image under the colours of a mask; class 0 has the colour `first`."""
    table = np.array([colour(first + k) for k in range(256)], np.uint8)
    table[VOID] = (128, 128, 128)
    grey = image.mean(2, keepdims=True).repeat(3, 2)
    return (0.35 * grey + 0.65 * table[mask]).astype(np.uint8)


def box_panels(
    image: Pixels,
    true: tuple[NDArray[np.float32], NDArray[np.int64]],
    predicted: tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]],
    names: Sequence[str],
) -> Pixels:
    """True boxes on the left, predicted ones with their scores on the right."""
    left = boxed(image, true[0], [names[k] for k in true[1]], true[1])
    labels = [f"{names[k]} {score:.2f}" for k, score in zip(predicted[1], predicted[2])]
    return side_by_side([left, boxed(image, predicted[0], labels, predicted[1])])


def boxed(
    image: Pixels, corners: NDArray[np.float32], labels: Sequence[str], classes: NDArray[np.int64]
) -> Pixels:
    scale = SIDE / max(image.shape[:2])
    picture = _panel(image)
    draw = ImageDraw.Draw(picture)
    for box, label, k in zip(corners, labels, classes):
        x0, y0, x1, y1 = (float(v) * scale for v in box)
        draw.rectangle((x0, y0, max(x0, x1 - 1), max(y0, y1 - 1)), outline=colour(int(k) + 1), width=2)
        at = (x0 + 2, max(0.0, y0 - 11) if y0 >= 11 else y0 + 1)
        draw.rectangle(draw.textbbox(at, label), fill=colour(int(k) + 1))
        draw.text(at, label, fill=(255, 255, 255))
    return np.asarray(picture)


def side_by_side(panels: Sequence[Pixels]) -> Pixels:
    """Panels of one height in a row with a white gap."""
    scaled = [np.asarray(_panel(panel)) for panel in panels]
    gap = np.full((scaled[0].shape[0], 6, 3), 255, np.uint8)
    parts = [part for panel in scaled for part in (panel, gap)]
    return np.concatenate(parts[:-1], axis=1)


def _panel(image: Pixels) -> Image.Image:
    """The image with a longer side of SIDE."""
    factor = SIDE / max(image.shape[:2])
    size = (max(1, round(image.shape[1] * factor)), max(1, round(image.shape[0] * factor)))
    return Image.fromarray(image).resize(size, Image.Resampling.BILINEAR)


def report_left_out(name: str, classes: Sequence[str]) -> None:
    """Say which classes of a test set do not count, if any."""
    if classes:
        print(
            f"{name}: classes that are not in both sets and do not count: {', '.join(classes)}",
            file=sys.stderr,
        )


def worst_and_best(values: NDArray[np.float64], shown: int = SHOWN) -> list[tuple[str, int]]:
    """("worst" or "best", row), none of them twice; rows without a value are left out."""
    order = [int(i) for i in np.argsort(values, kind="stable") if np.isfinite(values[i])]
    worst, best = order[:shown], order[::-1][:shown]
    return [("worst", i) for i in worst] + [("best", i) for i in best if i not in worst]
