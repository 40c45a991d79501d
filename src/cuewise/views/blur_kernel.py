"""Gaussian blur as Pillow makes it, to the bit: three extended box blurs per direction, 24-bit weights."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cuewise.kernels import kernel, part

Pixels = NDArray[np.uint8]
f32 = np.float32
u32 = np.uint32

PASSES = 3
BITS = 24


@kernel
def box_radius(sigma: float) -> f32:
    """Radius of the extended box whose threefold use has variance σ² (Gwosdek et al. 2011, eq. 7, 11, 14)."""
    variance = f32(f32(sigma) * f32(sigma) / f32(PASSES))
    length = f32(math.sqrt(12.0 * variance + 1.0))
    whole = f32(math.floor((length - 1.0) / 2.0))
    one = f32(1)
    part = (f32(2) * whole + one) * (whole * (whole + one) - f32(3) * variance)
    part = part / (f32(6) * (variance - (whole + one) * (whole + one)))
    return f32(whole + part)


@part
def _box(source: Pixels, target: Pixels, step: int, radius: int, inner: u32, edge: u32) -> None:
    """One box blur of flat bytes along neighbours `step` apart; the first and last (radius + 1)·step are left.

    inner weighs the 2·radius + 1 whole pixels, edge the two beyond them; Σ weights ≤ 2^24.
    Every sum is cut back to 32 bits at once: only so does the compiler keep 32-bit lanes.
    """
    n = source.size - 2 * (radius + 1) * step
    out = target[(radius + 1) * step : (radius + 1) * step + n]
    before, after = source[:n], source[2 * (radius + 1) * step :]
    if radius == 0:
        middle = source[step : step + n]
        for i in range(n):
            out[i] = _weighed(u32(middle[i]), u32(u32(before[i]) + u32(after[i])), inner, edge)
    elif radius == 1:
        left, middle, right = (
            source[step : step + n],
            source[2 * step : 2 * step + n],
            source[3 * step : 3 * step + n],
        )
        for i in range(n):
            whole = u32(u32(u32(left[i]) + u32(middle[i])) + u32(right[i]))
            out[i] = _weighed(whole, u32(u32(before[i]) + u32(after[i])), inner, edge)
    else:
        _wide_box(source, out, step, radius, inner, edge)


@part
def _weighed(whole: u32, ends: u32, inner: u32, edge: u32) -> np.uint8:
    total = u32(u32(whole * inner) + u32(ends * edge))
    return np.uint8(u32(total + u32(1 << (BITS - 1))) >> u32(BITS))


@part
def _wide_box(source: Pixels, out: Pixels, step: int, radius: int, inner: u32, edge: u32) -> None:
    """Any radius: running sums, one for each of `step` interleaved lines."""
    whole = np.zeros(step, u32)
    for j in range(1, 2 * radius + 1):
        for c in range(step):
            whole[c] = u32(whole[c] + u32(source[j * step + c]))
    reach = 2 * radius + 1
    for first in range(0, out.size, step):
        before, enters = (
            source[first : first + step],
            source[first + reach * step : first + (reach + 1) * step],
        )
        leaves = source[first + step : first + 2 * step]
        after, to = source[first + (reach + 1) * step : first + (reach + 2) * step], out[first : first + step]
        for c in range(step):
            total = u32(whole[c] + u32(enters[c]))
            to[c] = _weighed(total, u32(u32(before[c]) + u32(after[c])), inner, edge)
            whole[c] = u32(total - u32(leaves[c]))


@part
def _copy(source: Pixels, target: Pixels) -> None:
    for i in range(target.size):
        target[i] = source[i]


@part
def _repeat_sides(padded: Pixels, pad: int) -> None:
    """Fill `pad` pixels left and right of each row (H×3W bytes) with the border pixel."""
    last = padded.shape[1] - 3 * pad - 3
    for y in range(padded.shape[0]):
        row = padded[y]
        for x in range(3 * pad):
            row[x] = row[3 * pad + x % 3]
            row[last + 3 + x] = row[last + x % 3]


@part
def _repeat_ends(padded: Pixels, pad: int) -> None:
    """Fill `pad` rows above and below with the border row."""
    last = padded.shape[0] - pad - 1
    for y in range(pad):
        _copy(padded[pad], padded[y])
        _copy(padded[last], padded[last + 1 + y])


@kernel
def blur(rows: Pixels, sigma: float, scratch: Pixels) -> None:
    """Blur H×3W bytes in place; scratch: at least `scratch_bytes` long."""
    exact = box_radius(sigma)
    radius = int(exact)
    inner = u32(f32(1 << BITS) / (exact * f32(2) + f32(1)))
    edge = u32(((1 << BITS) - (2 * radius + 1) * np.int64(inner)) // 2)
    pad = radius + 1
    height, length = rows.shape[0] + 2 * pad, rows.shape[1] + 6 * pad
    a = scratch[: height * length]
    b = scratch[height * length : 2 * height * length]
    a2, b2 = a.reshape(height, length), b.reshape(height, length)
    for y in range(rows.shape[0]):
        _copy(rows[y], a2[pad + y, 3 * pad : length - 3 * pad])
    # rows of padding take part in the horizontal passes: they hold anything, and are filled before the vertical ones
    for _ in range(PASSES):
        _repeat_sides(a2, pad)
        _box(a, b, 3, radius, inner, edge)
        a, b, a2, b2 = b, a, b2, a2
    for _ in range(PASSES):
        _repeat_ends(a2, pad)
        _box(a, b, length, radius, inner, edge)
        a, b, a2, b2 = b, a, b2, a2
    for y in range(rows.shape[0]):
        _copy(a2[pad + y, 3 * pad : length - 3 * pad], rows[y])


def scratch_bytes(size: int, sigma: float) -> int:
    """Bytes for two padded copies of a size×size image."""
    pad = int(box_radius(sigma)) + 1
    return 6 * (size + 2 * pad) ** 2
