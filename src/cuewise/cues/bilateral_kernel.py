"""Compiled bilateral filter: row by row, two opposite taps at once, in loops short enough to vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import FAST, MAGIC, fused, power_of_two

Floats = NDArray[np.float32]
LANES = 16
U = np.uint64


@njit(cache=True, nogil=True, inline="always", fastmath=FAST)
def exp2_short(a: Any, b: Any, scale: Any) -> Any:
    """As `exp2_product` with one term less, to 3e-6: enough for a mean of grey levels."""
    z = max(fused(a, b, MAGIC), MAGIC - np.float32(126.0))
    f = fused(a, b, MAGIC - z)
    p = scale * np.float32(9.570101834643878e-3)
    p = p * f + scale * np.float32(5.591786031338328e-2)
    p = p * f + scale * np.float32(2.402474482975329e-1)
    p = p * f + scale * np.float32(6.931218147378084e-1)
    p = p * f + scale * np.float32(9.999992614451435e-1)
    return p * power_of_two(z)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def weigh_colour(
    planes: Floats, size: Any, p: Any, q1: Any, q2: Any, n: Any, k: Any, space: Any, w1: Floats, w2: Floats
) -> None:
    """w = space·2^(k·s²), s = Σ_c |I_c(p) − I_c(q)|, for two taps along a row of three channels `size` apart."""
    for j in range(n):
        r, g, b = planes[p + j], planes[size + p + j], planes[size + size + p + j]
        s1 = abs(r - planes[q1 + j]) + abs(g - planes[size + q1 + j]) + abs(b - planes[size + size + q1 + j])
        s2 = abs(r - planes[q2 + j]) + abs(g - planes[size + q2 + j]) + abs(b - planes[size + size + q2 + j])
        w1[j] = exp2_short(k * s1, s1, space)
        w2[j] = exp2_short(k * s2, s2, space)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def weigh_grey(
    planes: Floats, p: Any, q1: Any, q2: Any, n: Any, k: Any, space: Any, w1: Floats, w2: Floats
) -> None:
    """As `weigh_colour` for one channel."""
    for j in range(n):
        s1, s2 = abs(planes[p + j] - planes[q1 + j]), abs(planes[p + j] - planes[q2 + j])
        w1[j] = exp2_short(k * s1, s1, space)
        w2[j] = exp2_short(k * s2, s2, space)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_two(planes: Floats, q1: Any, q2: Any, n: Any, w1: Floats, w2: Floats, total: Floats, at: Any) -> None:
    """total[at:] += w₁·I(q₁) + w₂·I(q₂) along a row: one round trip to memory for two taps."""
    for j in range(n):
        total[at + j] += w1[j] * planes[q1 + j] + w2[j] * planes[q2 + j]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_weights(n: Any, w1: Floats, w2: Floats, total: Floats) -> None:
    """total += w₁ + w₂ along a row."""
    for j in range(n):
        total[j] += w1[j] + w2[j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def divide(total: Floats, begin: Any, norm: Floats, n: Any, out: Floats, at: Any) -> None:
    """out = total / norm along a row."""
    for j in range(n):
        out[at + j] = total[begin + j] / norm[j]


@njit(cache=True, nogil=True)
def bilateral_planes(planes: Floats, taps: Any, space: Floats, k: Any, radius: int, shape: Any) -> Floats:
    """Filtered copy [C, height·width'] of planes [C, (height + 2·radius)·stride], C ∈ {1, 3}; width' is a whole vector.

    taps: (dy, dx) of one half of the window; space: their spatial weights; k = −log₂e/2σ_r².
    """
    height, width, stride = shape
    channels, size = planes.shape
    flat = planes.reshape(-1)
    out = np.empty(channels * height * width, np.float32)
    totals, norm = np.zeros(channels * width, np.float32), np.zeros(width, np.float32)
    w1, w2 = np.zeros(width, np.float32), np.zeros(width, np.float32)
    n = U(width)
    for y in range(height):
        p = (y + radius) * stride + radius
        for c in range(channels):
            totals[c * width : (c + 1) * width] = flat[c * size + p : c * size + p + width]
        norm[:] = 1
        for t in range(len(taps)):
            q = taps[t, 0] * stride + taps[t, 1]
            if channels == 3:
                weigh_colour(flat, U(size), U(p), U(p + q), U(p - q), n, k, space[t], w1, w2)
            else:
                weigh_grey(flat, U(p), U(p + q), U(p - q), n, k, space[t], w1, w2)
            for c in range(channels):
                add_two(flat, U(c * size + p + q), U(c * size + p - q), n, w1, w2, totals, U(c * width))
            add_weights(n, w1, w2, norm)
        for c in range(channels):
            divide(totals, U(c * width), norm, n, out, U((c * height + y) * width))
    return out.reshape(channels, height, width)
