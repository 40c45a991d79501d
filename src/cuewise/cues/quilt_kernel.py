"""Compiled image quilting: a sheet of one image's texture, laid out so that a guide agrees.

A. A. Efros, W. T. Freeman, "Image Quilting for Texture Synthesis and Transfer", SIGGRAPH 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@njit(cache=True, nogil=True)
def seam(errors: Floats) -> NDArray[np.int64]:
    """The column, in each row, of the cheapest path from top to bottom that moves at most one column a row."""
    rows, columns = errors.shape
    cost = errors.copy()
    for y in range(1, rows):
        for x in range(columns):
            best = cost[y - 1, x]
            if x > 0:
                best = min(best, cost[y - 1, x - 1])
            if x < columns - 1:
                best = min(best, cost[y - 1, x + 1])
            cost[y, x] += best
    path = np.zeros(rows, np.int64)
    path[rows - 1] = np.argmin(cost[rows - 1])
    for y in range(rows - 2, -1, -1):
        x = path[y + 1]
        path[y] = x
        if x > 0 and cost[y, x - 1] < cost[y, path[y]]:
            path[y] = x - 1
        if x < columns - 1 and cost[y, x + 1] < cost[y, path[y]]:
            path[y] = x + 1
    return path


@njit(cache=True, nogil=True, fastmath=True)
def misfit(
    out: Floats,
    source: Floats,
    want: Floats,
    have: Floats,
    at: Any,
    take: Any,
    size: Any,
    overlap: int,
    weight: Any,
    bound: Any,
) -> Any:
    """Σ (overlap with what is laid)² + weight · Σ (guide)², every second pixel; stops where it passes `bound`."""
    (y0, x0), (sy, sx), (tall, wide) = at, take, size
    total = np.float32(0.0)
    for y in range(0, tall, 2):
        for x in range(0, wide, 2):
            g = want[y0 + y, x0 + x] - have[sy + y, sx + x]
            total += weight * g * g
            if (x0 > 0 and x < overlap) or (y0 > 0 and y < overlap):
                for c in range(3):
                    d = out[y0 + y, x0 + x, c] - source[sy + y, sx + x, c]
                    total += d * d
        if total > bound:
            return total
    return total


@njit(cache=True, nogil=True)
def lay(out: Floats, source: Floats, at: Any, take: Any, size: Any, overlap: int) -> None:
    """Copy a block of the source, cut against what is laid along the cheapest seams."""
    (y0, x0), (sy, sx), (tall, wide) = at, take, size
    first_column = np.zeros(tall, np.int64)
    first_row = np.zeros(wide, np.int64)
    band = min(overlap, min(tall, wide))
    if x0 > 0:
        errors = np.zeros((tall, band), np.float32)
        for y in range(tall):
            for x in range(band):
                for c in range(3):
                    errors[y, x] += (out[y0 + y, x0 + x, c] - source[sy + y, sx + x, c]) ** 2
        first_column = seam(errors)
    if y0 > 0:
        errors = np.zeros((wide, band), np.float32)
        for x in range(wide):
            for y in range(band):
                for c in range(3):
                    errors[x, y] += (out[y0 + y, x0 + x, c] - source[sy + y, sx + x, c]) ** 2
        first_row = seam(errors)
    for y in range(tall):
        for x in range(wide):
            if x >= first_column[y] and y >= first_row[x]:
                for c in range(3):
                    out[y0 + y, x0 + x, c] = source[sy + y, sx + x, c]


@njit(cache=True, nogil=True)
def quilt(
    source: Floats, have: Floats, want: Floats, numbers: Any, block: int, overlap: int, weight: Any
) -> Floats:
    """A sheet H×W×3 of blocks of `source` (h×w×3), row by row; each the best of K random places.

    have h×w and want H×W: the guide in the source and in the sheet. numbers: uniform in 0..1, steps×K×2.
    """
    height, width = want.shape
    out = np.zeros((height, width, 3), np.float32)
    step = block - overlap
    k = 0
    for y0 in range(0, max(height - overlap, 1), step):
        for x0 in range(0, max(width - overlap, 1), step):
            size = (min(block, height - y0), min(block, width - x0))
            rows, columns = source.shape[0] - size[0] + 1, source.shape[1] - size[1] + 1
            best, place = np.float32(np.inf), (0, 0)
            for j in range(numbers.shape[1]):
                take = (int(numbers[k, j, 0] * rows), int(numbers[k, j, 1] * columns))
                cost = misfit(out, source, want, have, (y0, x0), take, size, overlap, weight, best)
                if cost < best:
                    best, place = cost, take
            lay(out, source, (y0, x0), place, size, overlap)
            k += 1
    return out
