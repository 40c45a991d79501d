"""preview.png: some originals, each with what was made of it at its right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.data import Image

TILE, GAP, WIDE = 128, 6, 16  # pixels; WIDE is the gap between two pairs
PAIRS = 16


def spread(n: int, count: int) -> list[int]:
    """At most `count` numbers below n, evenly spread, the first included."""
    return sorted({i * n // count for i in range(count)}) if n > count else list(range(n))


def grid(rows: Sequence[Sequence[Image]], columns: int = 4) -> Image:
    """Groups of images (original, result) side by side, `columns` groups per line, on white."""
    columns = min(columns, len(rows))
    lines = math.ceil(len(rows) / columns)
    each = max(len(row) for row in rows)
    group = each * TILE + (each - 1) * GAP
    height = lines * TILE + (lines - 1) * WIDE + 2 * WIDE
    width = columns * group + (columns - 1) * WIDE * 2 + 2 * WIDE
    sheet: NDArray[np.uint8] = np.full((height, width, 3), 255, np.uint8)
    for number, row in enumerate(rows):
        line, column = divmod(number, columns)
        for k, image in enumerate(row):
            top = WIDE + line * (TILE + WIDE)
            left = WIDE + column * (group + 2 * WIDE) + k * (TILE + GAP)
            sheet[top : top + TILE, left : left + TILE] = fit(image)
    return sheet


def fit(image: Image) -> Image:
    """Into a square tile, whole, on light grey."""
    height, width = image.shape[:2]
    scale = TILE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST if scale >= 2 else cv2.INTER_LINEAR
    small = cv2.resize(image, size, interpolation=way)
    tile: NDArray[np.uint8] = np.full((TILE, TILE, 3), 236, np.uint8)
    top, left = (TILE - size[1]) // 2, (TILE - size[0]) // 2
    tile[top : top + size[1], left : left + size[0]] = small
    return tile
