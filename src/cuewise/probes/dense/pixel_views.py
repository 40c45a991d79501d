"""Images and masks as a segmenter sees them: the whole image on a square, or a random part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.data import Sample, Shown
from cuewise.data.annotations.annotated import VOID

Pixels = NDArray[np.uint8]
FILTERS = {"bicubic": Image.Resampling.BICUBIC}


class Placed(NamedTuple):
    """A scaled image in the upper left corner of a square; `height`, `width` of what is image there."""

    canvas: Pixels
    height: int
    width: int


@dataclass(frozen=True)
class WholeView:
    """The whole image, its longer side scaled to `size`, the rest of the square filled with the mean colour.

    Facts: `target` the classes of the image's own pixels, `grid` the same at the cells of a grid×grid raster of the square,
    `extent` (height, width) of the image in the square.
    """

    size: int
    classes: NDArray[np.uint8]  # 256: value of a mask → class, VOID where it does not count
    fill: tuple[int, int, int]
    interpolation: str = "bilinear"
    grid: int = 0

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        target = class_of(sample, self.classes)
        placed = place(sample.image, self.size, self.fill, self.interpolation)
        facts = {"target": target, "extent": np.array([placed.height, placed.width])}
        if self.grid:
            facts["cells"] = cells(target, placed, self.size, self.grid)
        return Shown({"image": placed.canvas}, facts)


@dataclass(frozen=True)
class CroppedView:
    """A random scale of 0.5 to 2, a random size×size part, and a flip of both image and mask."""

    size: int
    classes: NDArray[np.uint8]
    fill: tuple[int, int, int]
    interpolation: str = "bilinear"
    scales: tuple[float, float] = (0.5, 2.0)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        target = class_of(sample, self.classes)
        height, width = target.shape
        factor = rng.uniform(*self.scales) * self.size / max(height, width)
        h, w = max(1, round(height * factor)), max(1, round(width * factor))
        image = resized(sample.image, h, w, self.interpolation)
        mask = np.asarray(Image.fromarray(target).resize((w, h), Image.Resampling.NEAREST))
        top, left = (int(rng.integers(min(0, self.size - n), max(0, self.size - n) + 1)) for n in (h, w))
        canvas = np.full((self.size, self.size, 3), self.fill, np.uint8)
        truth = np.full((self.size, self.size), VOID, np.uint8)
        there = (
            slice(max(0, top), max(0, top) + min(h, self.size)),
            slice(max(0, left), max(0, left) + min(w, self.size)),
        )
        here = (
            slice(max(0, -top), max(0, -top) + min(h, self.size)),
            slice(max(0, -left), max(0, -left) + min(w, self.size)),
        )
        canvas[there], truth[there] = image[here], mask[here]
        if rng.random() < 0.5:
            canvas, truth = canvas[:, ::-1], truth[:, ::-1]
        return Shown({"image": np.ascontiguousarray(canvas), "target": np.ascontiguousarray(truth)})


def class_of(sample: Sample, classes: NDArray[np.uint8]) -> Pixels:
    """H×W classes from the values of the sample's mask."""
    assert sample.facts.mask is not None, "a masked set gives a mask with each image"
    return classes[sample.facts.mask]


def place(image: Pixels, size: int, fill: tuple[int, int, int], interpolation: str) -> Placed:
    """The image scaled to a longer side of `size`, on a square."""
    height, width = image.shape[:2]
    h = max(1, round(height * size / max(height, width)))
    w = max(1, round(width * size / max(height, width)))
    canvas = np.full((size, size, 3), fill, np.uint8)
    canvas[:h, :w] = resized(image, h, w, interpolation)
    return Placed(canvas, h, w)


def resized(image: Pixels, height: int, width: int, interpolation: str) -> Pixels:
    if image.shape[:2] == (height, width):
        return image
    how = FILTERS.get(interpolation, Image.Resampling.BILINEAR)
    return np.asarray(Image.fromarray(image).resize((width, height), how))


def cells(target: Pixels, placed: Placed, size: int, grid: int) -> Pixels:
    """grid×grid: the class at the centre of each cell of the square, VOID outside the image."""
    centres = (np.arange(grid) + 0.5) * size / grid
    height, width = target.shape
    rows, columns = centres * height / placed.height, centres * width / placed.width
    rows, columns = rows[rows < height].astype(int), columns[columns < width].astype(int)
    out = np.full((grid, grid), VOID, np.uint8)
    out[: len(rows), : len(columns)] = target[np.ix_(rows, columns)]
    return out
