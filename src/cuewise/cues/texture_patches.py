"""Where the examples of a texture come from: the centre patch of an image and a random one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from cuewise.cues.forms import Pixels
from cuewise.errors import UserError

LEAST = 48  # the paper's smaller patch; smaller images are enlarged to it under the rule "paper"
Windows = tuple[tuple[int, int, int, int], tuple[int, int, int, int]]


@dataclass(frozen=True)
class Places:
    """Where the two examples lie: `boxes` (top, left, side, side) on the image enlarged by `scale`."""

    boxes: Windows
    scale: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; `from_dict` is the inverse."""
        return {"boxes": [list(box) for box in self.boxes], "side": self.boxes[0][2], "scale": self.scale}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Places:
        one, two = ((y, x, h, w) for y, x, h, w in values["boxes"])
        return cls((one, two), values["scale"])


@dataclass(frozen=True, kw_only=True)
class Patches(Places):
    """Example patches with where they were cut."""

    examples: tuple[Pixels, Pixels]


def patch_side(height: int, width: int, rule: str = "auto") -> int:
    """Side P of the patches: 96, or 48 where the image is below 96.

    rule: "paper" does only this; "auto" takes 0.43·side (96/224) on images of at most 64, so that a patch of a small
    image is as much of it as in the paper.
    """
    if rule not in ("auto", "paper"):
        raise UserError(f"texture: no patch rule {rule!r}; auto, paper, or a number of pixels")
    side = min(height, width)
    if rule == "auto" and side <= 64:
        return max(2, round(0.43 * side))
    return 96 if side >= 96 else LEAST


def draw_patches(
    rng: np.random.Generator, height: int, width: int, *, side: int | None = None, rule: str = "auto"
) -> Places:
    """Centre patch [H/2 − P/2, H/2 + P/2)² and a uniformly random one, fully inside an image of that size.

    The image is to be enlarged first where its short side is below P.
    """
    p = patch_side(height, width, rule) if side is None else side
    if p < 1:
        raise UserError(f"texture: a patch of {p} pixels is empty; give at least 1")
    scale = max(1.0, p / min(height, width))
    height, width = _enlarged(height, width, p, scale)
    centre = (height // 2 - p // 2, width // 2 - p // 2, p, p)
    return Places(
        (centre, (int(rng.integers(height - p + 1)), int(rng.integers(width - p + 1)), p, p)), scale
    )


def cut_patches(image: Pixels, places: Places) -> Patches:
    """The patches at these places of an H×W×3 image at its original resolution."""
    if places.scale > 1:
        size = _enlarged(image.shape[0], image.shape[1], places.boxes[0][2], places.scale)
        image = np.asarray(cv2.resize(image, size[::-1], interpolation=cv2.INTER_CUBIC), np.uint8)
    one, two = (np.ascontiguousarray(image[y : y + h, x : x + w]) for y, x, h, w in places.boxes)
    return Patches(places.boxes, places.scale, examples=(one, two))


def extract_patches(
    image: Pixels, rng: np.random.Generator, *, side: int | None = None, rule: str = "auto"
) -> Patches:
    """`draw_patches` and `cut_patches` of one H×W×3 image."""
    return cut_patches(image, draw_patches(rng, *image.shape[:2], side=side, rule=rule))


def _enlarged(height: int, width: int, p: int, scale: float) -> tuple[int, int]:
    if scale == 1:
        return height, width
    return max(p, round(height * scale)), max(p, round(width * scale))
