"""Compiled bilinear reading of whole pixels: the channels are lanes of 64-bit words, one multiplication moves all.

Four channels of 16 bits (8 for the value, 8 for the weight) or two of 32 (8 + 10 + 10 bits). Images of more channels
are read in groups of four.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

ONE = np.uint64(1)


def four_lanes(image: Bytes) -> Words:
    """H×W×C to G×H×W words of four 16-bit lanes."""
    height, width, channels = image.shape
    lanes = np.zeros((-(-channels // 4), height, width, 4), np.uint16)
    for g in range(len(lanes)):
        part = image[:, :, 4 * g : 4 * g + 4]
        lanes[g, :, :, : part.shape[2]] = part
    return np.asarray(lanes.view(np.uint64)[..., 0])


@njit(cache=True, nogil=True)
def sum_of_zooms(
    words: Words, rows: Any, row_parts: Words, columns: Words, column_parts: Words, out: Bytes
) -> None:
    """out = mean of the image and its zooms. words H×W; zoom z reads row rows[z, y] and the next, and so on.

    rows, row_parts Z×H; columns, column_parts Z×W; parts in 256ths. At most 31 zooms fit into a lane.
    """
    height, width = words.shape
    half, low, eleven = (
        np.uint64(0x0080008000800080),
        np.uint64(0x00FF00FF00FF00FF),
        np.uint64(0x07FF07FF07FF07FF),
    )
    full, eight, five, three = np.uint64(256), np.uint64(8), np.uint64(5), np.uint64(3)
    line = np.zeros(width + 1, np.uint64)
    total = np.zeros(width, np.uint64)
    weight = np.float32(1.0 / (8 * (rows.shape[0] + 1)))
    for y in range(height):
        for x in range(width):
            total[x] = words[y, x] << three
        for z in range(rows.shape[0]):
            upper, lower = words[rows[z, y]], words[min(rows[z, y] + 1, height - 1)]
            b = row_parts[z, y]
            for x in range(width):
                line[x] = ((upper[x] * (full - b) + lower[x] * b + half) >> eight) & low
            column, part = columns[z], column_parts[z]
            for x in range(width):
                a, s = part[x], column[x]
                total[x] += ((line[s] * (full - a) + line[s + ONE] * a) >> five) & eleven
        for x in range(width):
            lanes = total[x]
            for c in range(out.shape[2]):
                out[y, x, c] = np.uint8(np.float32(lanes & np.uint64(0xFFFF)) * weight + np.float32(1e-2))
                lanes >>= np.uint64(16)


def two_lanes(image: Bytes) -> Words:
    """H×W×C to G×H·W×2 words of two 32-bit lanes: a pixel's channels 0, 1 and 2, 3."""
    height, width, channels = image.shape
    lanes = np.zeros((-(-channels // 4), height * width, 4), np.uint32)
    for g in range(len(lanes)):
        part = image.reshape(-1, channels)[:, 4 * g : 4 * g + 4]
        lanes[g, :, : part.shape[1]] = part
    return np.asarray(lanes.view(np.uint64))


@njit(cache=True, nogil=True, inline="always")
def _mirror(i: Any, n: Any) -> Any:
    """Index i of a row of n continued as d c b a | a b c d | d c b a."""
    i = i % (2 * n)
    return i if i < n else 2 * n - 1 - i


@njit(cache=True, nogil=True)
def displace(words: Words, moves: NDArray[np.float32], gain: Any, out: Bytes) -> None:
    """Bilinear reading at (y, x) + gain · moves[y, x] (right, down), mirrored at the borders; weights in 1024ths.

    words H·W×2 (two 32-bit lanes each), moves H×W×2, out H×W×C with C ≤ 4.
    """
    height, width, channels = out.shape
    thousand, full, third = np.float32(1024.0), np.int64(1024), np.uint64(20)
    byte, lane = np.uint64(255), np.uint64(32)
    zero = np.uint64(0)
    for y in range(height):
        for x in range(width):
            u = np.float32(x) + moves[y, x, 0] * gain
            v = np.float32(y) + moves[y, x, 1] * gain
            x0, y0 = int(np.floor(u)), int(np.floor(v))
            a = int((u - np.float32(x0)) * thousand + np.float32(0.5))
            b = int((v - np.float32(y0)) * thousand + np.float32(0.5))
            top, low, left, right = y0, y0 + 1, x0, x0 + 1
            if y0 < 0 or x0 < 0 or low >= height or right >= width:
                top, low = _mirror(y0, height), _mirror(low, height)
                left, right = _mirror(x0, width), _mirror(right, width)
            p, q = np.uint64(top * width + left), np.uint64(top * width + right)
            r, s = np.uint64(low * width + left), np.uint64(low * width + right)
            wp, wq = np.uint64((full - a) * (full - b)), np.uint64(a * (full - b))
            wr, ws = np.uint64((full - a) * b), np.uint64(a * b)
            first = words[p, zero] * wp + words[q, zero] * wq + words[r, zero] * wr + words[s, zero] * ws
            out[y, x, 0] = np.uint8((first >> third) & byte)
            if channels > 1:
                out[y, x, 1] = np.uint8((first >> (third + lane)) & byte)
            if channels > 2:
                second = words[p, ONE] * wp + words[q, ONE] * wq + words[r, ONE] * wr + words[s, ONE] * ws
                out[y, x, 2] = np.uint8((second >> third) & byte)
                if channels > 3:
                    out[y, x, 3] = np.uint8((second >> (third + lane)) & byte)
