"""Compiled loops over whole images: sums of shifted images, zooms, displacement, row sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@njit(cache=True, nogil=True, inline="always")
def byte(value: Any) -> Any:
    """Clip to 0..255 and drop the fraction."""
    return np.uint8(min(max(value, np.float32(0.0)), np.float32(255.0)))


@njit(cache=True, nogil=True)
def floats_to_bytes(values: Floats, out: Bytes) -> None:
    """Both flat; clip and drop the fraction. A thousandth is added: an exact 17 must not become 16."""
    for i in range(values.size):
        out[i] = byte(values[i] + np.float32(1e-3))


@njit(cache=True, nogil=True)
def prefix_sums(image: Bytes) -> Floats:
    """Row sums P[y, x] = Σ_{j<x} image[y, j] for an H×W×C image, as H×(W+1)·C."""
    height, width, channels = image.shape
    out = np.zeros((height, (width + 1) * channels), np.float32)
    for y in range(height):
        flat = image[y].ravel()
        for i in range(width * channels):
            out[y, i + channels] = out[y, i] + np.float32(flat[i])
    return out


@njit(cache=True, nogil=True, fastmath=True)
def sum_of_shifts(padded: Any, rows: Ints, starts: Ints, weights: Floats, out: Floats) -> None:
    """out[y, i] = Σ_t weights[t] · padded[y + rows[t], starts[t] + i]; all offsets ≥ 0, four taps at a time.

    The number of taps must be a multiple of four (pad with weight zero).
    """
    height, length = out.shape
    for y in range(height):
        for i in range(length):
            out[y, i] = np.float32(0.0)
        for t in range(0, weights.size, 4):
            w0, w1, w2, w3 = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
            a = padded[y + rows[t], starts[t] : starts[t] + length]
            b = padded[y + rows[t + 1], starts[t + 1] : starts[t + 1] + length]
            c = padded[y + rows[t + 2], starts[t + 2] : starts[t + 2] + length]
            d = padded[y + rows[t + 3], starts[t + 3] : starts[t + 3] + length]
            for i in range(length):
                ab = w0 * np.float32(a[i]) + w1 * np.float32(b[i])
                cd = w2 * np.float32(c[i]) + w3 * np.float32(d[i])
                out[y, i] += ab + cd
