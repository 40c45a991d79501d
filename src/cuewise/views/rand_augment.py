"""RandAugment: two random operations of one strength, as an augmentation that can be added to any view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from cuewise.views.augmentations import register_augmentation

Pixels = NDArray[np.uint8]
Picture = Image.Image
GREY = (128, 128, 128)  # where a moved image leaves a hole
OPERATIONS_A_VIEW, STRENGTH, CHANCE = 2, 1.0, 0.5  # n = 2, m = 10 of 10; each happens half of the time


def _affine(picture: Picture, matrix: tuple[float, ...]) -> Picture:
    how = Image.Resampling.BILINEAR
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample=how, fillcolor=GREY)


# value: signed strength in −1…1, of which operations without a direction use the amount
OPERATIONS: dict[str, Callable[[Picture, float], Picture]] = {
    "autocontrast": lambda p, v: ImageOps.autocontrast(p),
    "equalize": lambda p, v: ImageOps.equalize(p),
    "invert": lambda p, v: ImageOps.invert(p),
    "posterize": lambda p, v: ImageOps.posterize(p, 4 - round(3 * abs(v))),
    "solarize": lambda p, v: ImageOps.solarize(p, 256 - round(256 * abs(v))),
    "rotate": lambda p, v: p.rotate(30 * v, Image.Resampling.BILINEAR, fillcolor=GREY),
    "color": lambda p, v: ImageEnhance.Color(p).enhance(1 + 0.9 * v),
    "contrast": lambda p, v: ImageEnhance.Contrast(p).enhance(1 + 0.9 * v),
    "brightness": lambda p, v: ImageEnhance.Brightness(p).enhance(1 + 0.9 * v),
    "sharpness": lambda p, v: ImageEnhance.Sharpness(p).enhance(1 + 0.9 * v),
    "shear-x": lambda p, v: _affine(p, (1, 0.3 * v, 0, 0, 1, 0)),
    "shear-y": lambda p, v: _affine(p, (1, 0, 0, 0.3 * v, 1, 0)),
    "translate-x": lambda p, v: _affine(p, (1, 0, 0.45 * v * p.width, 0, 1, 0)),
    "translate-y": lambda p, v: _affine(p, (1, 0, 0, 0, 1, 0.45 * v * p.height)),
}
GEOMETRY = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")  # those that leave colours alone


def draw(
    rng: np.random.Generator, names: Sequence[str] = tuple(OPERATIONS)
) -> tuple[tuple[str, float], ...] | None:
    """(operation, signed strength) of those that happen, first to last; None where none does."""
    u = rng.random((OPERATIONS_A_VIEW, 4)).tolist()
    level = [min(1.0, max(0.0, STRENGTH - 0.1 * abs(v))) for *_, v in u]  # a little below, as published
    chosen = [
        (names[int(which * len(names))], m if side < 0.5 else -m)
        for (happens, which, side, _), m in zip(u, level)
        if happens < CHANCE
    ]
    return tuple(chosen) or None


def apply(view: Pixels, drawn: tuple[tuple[str, float], ...]) -> Pixels:
    """The view after the drawn operations.

    Cubuk et al. 2020, RandAugment.
    """
    picture = Image.fromarray(view)
    for name, value in drawn:
        picture = OPERATIONS[name](picture, value)
    return np.array(picture)  # a copy that can be written to


RAND_AUGMENT = register_augmentation(
    "rand-augment", "two random operations on colours or geometry", draw=draw, apply=apply
)
RAND_AUGMENT_GEOMETRY = register_augmentation(
    "rand-augment-geometry",
    "two random operations on geometry alone",
    draw=partial(draw, names=GEOMETRY),
    apply=apply,
)
