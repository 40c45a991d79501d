"""Crop and resize with Pillow's bilinear arithmetic, to the bit: 22-bit weights, 8 bits between the passes."""

from __future__ import annotations

from math import ceil

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.views.lanes import (
    BITS,
    weigh_4_last_pixels,
    weigh_4_pixels,
    weigh_32_bytes,
    weigh_byte,
    weigh_pixel,
)

Pixels = NDArray[np.uint8]
Starts = NDArray[np.int64]  # n×2: first source pixel, count of taps
Taps = NDArray[np.int32]  # n×k: weights in units of 2^-22

BLOCK = 32  # bytes of a row that the vertical pass weighs at a time


@njit(cache=True, nogil=True)
def weights(source: int, target: int, first: int, starts: Starts, taps: Taps) -> None:
    """Triangle filter of `source` → `target` pixels, for the outputs from `first` on."""
    scale = source / target
    support = max(scale, 1.0)
    inverse = 1.0 / support
    k = np.empty(taps.shape[1])
    for i in range(starts.shape[0]):
        middle = (first + i + 0.5) * scale
        low = max(0, int(middle - support + 0.5))
        n = min(source, int(middle + support + 0.5)) - low
        total = 0.0
        for t in range(n):
            k[t] = max(0.0, 1.0 - abs((t + low - middle + 0.5) * inverse))
            total += k[t]
        for t in range(n):
            taps[i, t] = np.int32(0.5 + k[t] / total * (1 << BITS))
        while n > 1 and taps[i, n - 1] == 0:
            n -= 1
        starts[i, 0], starts[i, 1] = low, n


@njit(cache=True, nogil=True)
def across(source: int, stride: int, rows: int, starts: Starts, taps: Taps, target: int, step: int) -> None:
    """Horizontal pass over addresses: `rows` rows, `stride` apart in the source and `step` in the target."""
    last = starts.shape[0] - 1
    weights_at, tap_bytes = taps.ctypes.data, 4 * taps.shape[1]
    quads = rows // 4 * 4
    for y in range(0, quads, 4):
        line, to = source + y * stride, target + y * step
        # four bytes are written for a pixel of three: the fourth is overwritten by the next pixel …
        for x in range(last):
            at, n = line + 3 * starts[x, 0], starts[x, 1]
            weigh_4_pixels(at, stride, 3, weights_at + x * tap_bytes, n, to + 3 * x, step)
        # … which the last one does not have
        at, n = line + 3 * starts[last, 0], starts[last, 1]
        weigh_4_last_pixels(at, stride, 3, weights_at + last * tap_bytes, n, to + 3 * last, step)
    for y in range(quads, rows):
        line, to = source + y * stride, target + y * step
        for x in range(last + 1):
            at, n = line + 3 * starts[x, 0], starts[x, 1]
            weigh_pixel(at, 0, 3, weights_at + x * tap_bytes, n, to + 3 * x, 0)


@njit(cache=True, nogil=True)
def down(source: int, stride: int, length: int, starts: Starts, taps: Taps, target: int, step: int) -> None:
    """Vertical pass over addresses: rows of `length` bytes."""
    weights_at, tap_bytes = taps.ctypes.data, 4 * taps.shape[1]
    for y in range(starts.shape[0]):
        line, n = source + starts[y, 0] * stride, starts[y, 1]
        to, k = target + y * step, weights_at + y * tap_bytes
        if length < BLOCK:
            for x in range(length):
                weigh_byte(line + x, 0, stride, k, n, to + x, 0)
        else:
            for x in range(0, length - BLOCK, BLOCK):
                weigh_32_bytes(line + x, 0, stride, k, n, to + x, 0)
            x = length - BLOCK  # overlaps the block before: the same bytes are written twice
            weigh_32_bytes(line + x, 0, stride, k, n, to + x, 0)


@njit(cache=True, nogil=True)
def resize(
    image: Pixels,
    crop: tuple[int, int, int, int],
    full: tuple[int, int],
    window: tuple[int, int],
    flip: bool,
    scratch: Pixels,
    out: Pixels,
) -> None:
    """Resize crop (top, left, height, width) to full (height, width); write the window (top, left) of it to out.

    scratch: at least `scratch_bytes` long.
    """
    top, left, height, width = crop
    stride = 3 * image.shape[1]
    rows, columns = out.shape[0], out.shape[1]
    y_starts, x_starts = np.empty((rows, 2), np.int64), np.empty((columns, 2), np.int64)
    y_taps = np.empty((rows, tap_count(height, full[0])), np.int32)
    x_taps = np.empty((columns, tap_count(width, full[1])), np.int32)
    weights(height, full[0], window[0], y_starts, y_taps)
    weights(width, full[1], window[1], x_starts, x_taps)
    if flip:
        x_starts, x_taps = x_starts[::-1].copy(), x_taps[::-1].copy()
    first = y_starts[0, 0]
    used = y_starts[rows - 1, 0] + y_starts[rows - 1, 1] - first
    source = image.ctypes.data + (top + first) * stride + 3 * left
    y_starts[:, 0] -= first
    step = 3 * columns
    middle = scratch.ctypes.data
    # Pillow 13: the vertical pass goes first where the height shrinks by more than twice what the width does
    shrink_y, shrink_x = height - full[0], width - full[1]
    if shrink_y > 0 and shrink_y > 2 * shrink_x:
        down(source, stride, 3 * width, y_starts, y_taps, middle, 3 * width)
        across(middle, 3 * width, rows, x_starts, x_taps, out.ctypes.data, step)
        return
    at_end = top + first + used == image.shape[0] and left + width == image.shape[1]
    inside = used - 1 if at_end else used
    across(source, stride, inside, x_starts, x_taps, middle, step)
    if at_end:
        # the last row is read from a copy, because pixels are read four bytes at a time
        tail = scratch[used * step :]
        tail[: 3 * width] = image[image.shape[0] - 1, left:].reshape(-1)
        across(tail.ctypes.data, stride, 1, x_starts, x_taps, middle + inside * step, step)
    down(middle, step, step, y_starts, y_taps, out.ctypes.data, step)


@njit(cache=True, nogil=True)
def tap_count(source: int, target: int) -> int:
    """The most weights that one output pixel can have."""
    return ceil(max(source / target, 1.0)) * 2 + 1


def scratch_bytes(height: int, width: int, rows: int, columns: int) -> int:
    """Room for what stands between the passes, one copied row, and a pixel read four bytes at a time."""
    return 3 * (max(height * columns, width * rows) + width) + 64
