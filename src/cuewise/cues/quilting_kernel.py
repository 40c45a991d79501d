"""Compiled image quilting: candidate search with early exit, and the minimum-error boundary cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.texture_kernel import U, draw

Floats = NDArray[np.float32]
SUM = {"contract", "nsz", "reassoc"}  # reassociation lets the squared difference of a row vectorise


@njit(cache=True, nogil=True, fastmath=SUM, forceinline=True)
def row_error(out: Floats, y: Any, x: Any, source: Floats, sy: Any, sx: Any, n: Any) -> Any:
    """Σ (out − source)² over n interleaved values of one row."""
    total = np.float32(0)
    for i in range(n):
        d = out[y, x + i] - source[sy, sx + i]
        total += d * d
    return total


@njit(cache=True, nogil=True, forceinline=True)
def overlap_error(
    out: Floats, top: int, left: int, source: Floats, sy: Any, sx: Any, block: int, overlap: int, best: Any
) -> Any:
    """Squared difference on the L-shaped overlap, left as soon as it reaches `best`."""
    error = np.float32(0)
    for i in range(block):
        if top > 0 and i < overlap:
            n = 3 * block
        elif left > 0:
            n = 3 * overlap
        else:
            break
        error += row_error(out, U(top + i), U(3 * left), source, sy + U(i), U(3) * sx, U(n))
        if error >= best:
            break
    return error


@njit(cache=True, nogil=True)
def seam(errors: Floats, path: Any) -> None:
    """path[i] is the column where the cheapest connected path down `errors` [rows, columns] crosses row i."""
    rows, columns = errors.shape
    for i in range(1, rows):
        for j in range(columns):
            best = errors[i - 1, j]
            if j > 0:
                best = min(best, errors[i - 1, j - 1])
            if j + 1 < columns:
                best = min(best, errors[i - 1, j + 1])
            errors[i, j] += best
    at: Any = np.argmin(errors[rows - 1])
    path[rows - 1] = at
    for i in range(rows - 2, -1, -1):
        low, high = max(at - 1, 0), min(at + 2, columns)
        at = low + np.argmin(errors[i, low:high])
        path[i] = at


@njit(cache=True, nogil=True)
def place(
    out: Floats,
    top: int,
    left: int,
    source: Floats,
    sy: Any,
    sx: Any,
    block: int,
    overlap: int,
    errors: Floats,
    cuts: Any,
) -> None:
    """Copy the block, right of and below the cheapest cuts through its overlaps."""
    cuts[:] = 0
    for side in range(2):  # 0: the seam down the left overlap, 1: the seam along the top overlap
        if (left if side == 0 else top) == 0:
            continue
        for i in range(block):
            for j in range(overlap):
                y, x = (i, j) if side == 0 else (j, i)
                error = np.float32(0)
                for c in range(3):
                    d = out[top + y, 3 * (left + x) + c] - source[sy + y, 3 * (sx + x) + c]
                    error += d * d
                errors[i, j] = error
        seam(errors, cuts[side])
    for i in range(block):
        for j in range(block):
            if j >= cuts[0, i] and i >= cuts[1, j]:
                for c in range(3):
                    out[top + i, 3 * (left + j) + c] = source[sy + i, 3 * (sx + j) + c]


@njit(cache=True, nogil=True)
def quilt_blocks(
    source: Floats, boxes: Any, size: Any, block: int, overlap: int, tries: int, seed: Any
) -> Floats:
    """float32 [H, 3·W] of the values of `source` (the examples below each other); boxes: (top, height, width) each."""
    height, width = size
    step = block - overlap
    rows, columns = max(1, -(-(height - overlap) // step)), max(1, -(-(width - overlap) // step))
    out = np.zeros((rows * step + overlap, 3 * (columns * step + overlap)), np.float32)
    errors, cuts = np.zeros((block, overlap), np.float32), np.zeros((2, block), np.int64)
    state = np.array([seed], np.uint64)
    for r in range(rows):
        for c in range(columns):
            top, left = r * step, c * step
            best, sy, sx = np.float32(np.inf), np.int64(0), np.int64(0)
            for _ in range(tries if r + c > 0 else 1):
                bits = draw(state)
                e = ((bits >> U(48)) * U(boxes.shape[0])) >> U(16)
                y = (((bits >> U(24)) & U(0xFFFFFF)) * U(boxes[e, 1] - block + 1)) >> U(24)
                x = ((bits & U(0xFFFFFF)) * U(boxes[e, 2] - block + 1)) >> U(24)
                y += U(boxes[e, 0])
                error = overlap_error(out, top, left, source, y, x, block, overlap, best)
                if error < best:
                    best, sy, sx = error, np.int64(y), np.int64(x)
            place(out, top, left, source, sy, sx, block, overlap, errors, cuts)
    return out[:height, : 3 * width]
