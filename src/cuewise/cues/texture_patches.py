"""Where the examples of a texture come from: the centre patch of an image and a random one."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from cuewise.cues.registry import Image
from cuewise.errors import UserError

LEAST = 48  # the paper's smaller patch; smaller images are enlarged to it under the rule "paper"


@dataclass(frozen=True)
class Patches:
    """Example patches with where they were cut: `boxes` (top, left, side, side) on the image enlarged by `scale`."""

    examples: tuple[Image, Image]
    boxes: tuple[tuple[int, int, int, int], tuple[int, int, int, int]]
    scale: float = 1.0


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


def extract_patches(
    image: Image, rng: np.random.Generator, *, side: int | None = None, rule: str = "auto"
) -> Patches:
    """Centre patch [H/2 − P/2, H/2 + P/2)² and a uniformly random one, fully inside.

    image: H×W×3 at its original resolution; enlarged first where its short side is below P.
    """
    p = patch_side(image.shape[0], image.shape[1], rule) if side is None else side
    if p < 1:
        raise UserError(f"texture: a patch of {p} pixels is no patch; give at least 1")
    scale = max(1.0, p / min(image.shape[:2]))
    if scale > 1:
        target = tuple(max(p, round(n * scale)) for n in image.shape[1::-1])
        image = np.asarray(cv2.resize(image, target, interpolation=cv2.INTER_CUBIC), np.uint8)
    height, width = image.shape[:2]
    corners = (
        (height // 2 - p // 2, width // 2 - p // 2),
        (int(rng.integers(height - p + 1)), int(rng.integers(width - p + 1))),
    )
    one, two = (np.ascontiguousarray(image[y : y + p, x : x + p]) for y, x in corners)
    first, second = ((y, x, p, p) for y, x in corners)
    return Patches((one, two), (first, second), scale)
