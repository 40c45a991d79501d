"""Whole images with the boxes that crops were taken from, for the contact sheet."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.data import Batch, BrokenImage, Dataset

SIDE = 160
COLORS = ((230, 60, 50), (40, 120, 230), (30, 160, 90), (200, 140, 0), (150, 70, 200))


def outlined(image: NDArray[np.uint8], corners: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The image with lines around boxes N×4, the first one on top."""
    out = image.copy()
    thick = max(1, round(max(image.shape[:2]) / 100))
    for number, (left, top, right, bottom) in reversed(list(enumerate(corners.round().astype(int).tolist()))):
        cv2.rectangle(out, (left, top), (right - 1, bottom - 1), COLORS[number % len(COLORS)], thick)
    return out


def boxed_images(batch: Batch, data: Dataset, rows: int) -> NDArray[np.uint8]:
    """N×S×S×3: the images of a batch on grey squares; per view a thick line around its region, a thin one around its crop."""
    roles = [name.removesuffix(".region") for name in batch.facts if name.endswith(".region")]
    out = np.full((min(rows, len(batch)), SIDE, SIDE, 3), 225, np.uint8)
    for row, picture in enumerate(out):
        try:
            image = data.image(int(batch.index[row]))
        except BrokenImage:
            continue
        height, width = image.shape[:2]
        scale = SIDE / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        nearest = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
        picture[: size[1], : size[0]] = cv2.resize(image, size, interpolation=nearest)
        for number, role in enumerate(roles):
            color = COLORS[number % len(COLORS)]
            for what, thick in ((f"{role}.region", 2), (f"{role}.crop", 1)):
                left, top, right, bottom = (
                    (batch.facts[what][row].numpy() * scale).round().astype(int).tolist()
                )
                if right > left:
                    cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), color, thick)
    return out
