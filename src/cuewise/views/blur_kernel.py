"""Gaussian blur as Pillow makes it, to the bit: three extended box blurs a direction, 24-bit weights."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
f32 = np.float32

PASSES = 3
BITS = 24


@njit(cache=True, nogil=True)
def box_radius(sigma: float) -> f32:
    """Radius of the extended box whose threefold use has variance σ² (Gwosdek et al. 2011, eq. 7, 11, 14)."""
    variance = f32(f32(sigma) * f32(sigma) / f32(PASSES))
    length = f32(math.sqrt(12.0 * variance + 1.0))
    whole = f32(math.floor((length - 1.0) / 2.0))
    one = f32(1)
    part = (f32(2) * whole + one) * (whole * (whole + one) - f32(3) * variance)
    part = part / (f32(6) * (variance - (whole + one) * (whole + one)))
    return f32(whole + part)


@njit(cache=True, nogil=True)
def _box(source: Pixels, target: Pixels, step: int, radius: int, inner: np.uint32, edge: np.uint32) -> None:
    """One box blur of flat bytes along neighbours `step` apart; the first and last (radius + 1)·step are left.

    inner weighs the 2·radius + 1 whole pixels, edge the two beyond them; Σ weights = 2^24.
    """
    half = np.uint32(1 << (BITS - 1))
    shift = np.uint32(BITS)
    n = source.size - 2 * (radius + 1) * step
    middle = source[(radius + 1) * step :]
    before, after = source[radius * step :], source[(radius + 2) * step :]
    far_before, far_after = source, source[2 * (radius + 1) * step :]
    out = target[(radius + 1) * step :]
    if radius == 0:
        for i in range(n):
            ends = np.uint32(np.uint32(far_before[i]) + np.uint32(far_after[i]))
            out[i] = np.uint8((np.uint32(middle[i]) * inner + ends * edge + half) >> shift)
    elif radius == 1:
        for i in range(n):
            whole = np.uint32(np.uint32(middle[i]) + np.uint32(before[i]) + np.uint32(after[i]))
            ends = np.uint32(np.uint32(far_before[i]) + np.uint32(far_after[i]))
            out[i] = np.uint8((whole * inner + ends * edge + half) >> shift)
    else:
        for i in range(n):
            whole = np.uint32(0)
            for j in range(1, 2 * radius + 2):
                whole = np.uint32(whole + np.uint32(far_before[i + j * step]))
            ends = np.uint32(np.uint32(far_before[i]) + np.uint32(far_after[i]))
            out[i] = np.uint8((whole * inner + ends * edge + half) >> shift)


@njit(cache=True, nogil=True)
def _repeat_sides(padded: Pixels, pad: int) -> None:
    """Fill `pad` pixels left and right of each row (H×3W bytes) with the border pixel."""
    last = padded.shape[1] - 3 * pad - 3
    for y in range(padded.shape[0]):
        row = padded[y]
        for x in range(3 * pad):
            row[x] = row[3 * pad + x % 3]
            row[last + 3 + x] = row[last + x % 3]


@njit(cache=True, nogil=True)
def _repeat_ends(padded: Pixels, pad: int) -> None:
    """Fill `pad` rows above and below with the border row."""
    last = padded.shape[0] - pad - 1
    for y in range(pad):
        padded[y] = padded[pad]
        padded[last + 1 + y] = padded[last]


@njit(cache=True, nogil=True)
def blur(rows: Pixels, sigma: float, scratch: Pixels) -> None:
    """Blur H×3W bytes in place; scratch: at least `scratch_bytes` long."""
    exact = box_radius(sigma)
    radius = int(exact)
    inner = np.uint32(f32(1 << BITS) / (exact * f32(2) + f32(1)))
    edge = np.uint32(((1 << BITS) - (2 * radius + 1) * np.int64(inner)) // 2)
    pad = radius + 1
    height, length = rows.shape[0] + 2 * pad, rows.shape[1] + 6 * pad
    a = scratch[: height * length]
    b = scratch[height * length : 2 * height * length]
    a2, b2 = a.reshape(height, length), b.reshape(height, length)
    a2[pad : height - pad, 3 * pad : length - 3 * pad] = rows
    # rows of padding take part in the horizontal passes: they hold anything, and are filled before the vertical ones
    for _ in range(PASSES):
        _repeat_sides(a2, pad)
        _box(a, b, 3, radius, inner, edge)
        a, b, a2, b2 = b, a, b2, a2
    for _ in range(PASSES):
        _repeat_ends(a2, pad)
        _box(a, b, length, radius, inner, edge)
        a, b, a2, b2 = b, a, b2, a2
    rows[:] = a2[pad : height - pad, 3 * pad : length - 3 * pad]


def scratch_bytes(size: int, sigma: float) -> int:
    """Room for two padded copies of a size×size image."""
    pad = int(box_radius(sigma)) + 1
    return 6 * (size + 2 * pad) ** 2
