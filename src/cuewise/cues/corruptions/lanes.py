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
def sums_of_zooms(
    words: Words, rows: Any, row_parts: Words, columns: Words, column_parts: Words, members: Any, out: Bytes
) -> None:
    """out[s] = mean of the image and of its zooms, each as often as it is a member of sum s. words H×W, out S×H×W×C.

    Zoom z reads row rows[z, y] and the next, and so on: rows, row_parts Z×H; columns, column_parts Z×W; parts in
    256ths; members Z×S: how often a zoom counts. At most 31 zooms a sum fit into a lane.
    """
    height, width = words.shape
    sums = members.shape[1]
    half, low = np.uint64(0x0080008000800080), np.uint64(0x00FF00FF00FF00FF)
    eleven = np.uint64(0x07FF07FF07FF07FF)
    full, eight, five, three = np.uint64(256), np.uint64(8), np.uint64(5), np.uint64(3)
    line = np.zeros(width + 1, np.uint64)
    zoomed = np.zeros(width, np.uint64)
    totals = np.zeros((sums, width), np.uint64)
    weights = np.zeros(sums, np.float32)
    for s in range(sums):
        weights[s] = 1.0 / (8.0 * (members[:, s].sum() + 1.0))
    for y in range(height):
        for s in range(sums):
            totals[s] = words[y] << three
        for z in range(rows.shape[0]):
            upper, lower = words[rows[z, y]], words[min(rows[z, y] + 1, height - 1)]
            b = row_parts[z, y]
            for x in range(width):
                line[x] = ((upper[x] * (full - b) + lower[x] * b + half) >> eight) & low
            column, part = columns[z], column_parts[z]
            for x in range(width):
                a, k = part[x], column[x]
                zoomed[x] = ((line[k] * (full - a) + line[k + ONE] * a) >> five) & eleven
            for s in range(sums):
                times, total = members[z, s], totals[s]
                if times > 0:
                    for x in range(width):
                        total[x] += zoomed[x] * times
        for s in range(sums):
            for x in range(width):
                lanes = totals[s, x]
                for c in range(out.shape[3]):
                    value = np.float32(lanes & np.uint64(0xFFFF)) * weights[s]
                    out[s, y, x, c] = np.uint8(value + np.float32(1e-2))
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
    flat = words.ravel()
    fine, shift, byte, lane = gain * np.float32(1024.0), np.uint64(20), np.uint64(255), np.uint64(52)
    away = 4096  # pixels added while the sum becomes an integer, so that cutting the fraction rounds down
    start = np.float32(away * 1024 + 0.5)
    for y in range(height):
        for x in range(width):
            u = np.int32(moves[y, x, 0] * fine + start) - np.int32((away - x) * 1024)
            v = np.int32(moves[y, x, 1] * fine + start) - np.int32((away - y) * 1024)
            left, top, a, b = u >> 10, v >> 10, u & 1023, v & 1023
            right, low = left + 1, top + 1
            if top < 0 or left < 0 or low >= height or right >= width:
                top, low = _mirror(top, height), _mirror(low, height)
                left, right = _mirror(left, width), _mirror(right, width)
            p, q = np.uint64(2 * (top * width + left)), np.uint64(2 * (top * width + right))
            r, s = np.uint64(2 * (low * width + left)), np.uint64(2 * (low * width + right))
            wq, ws = np.uint64(a * (1024 - b)), np.uint64(a * b)
            wp, wr = np.uint64((1024 - a) * (1024 - b)), np.uint64((1024 - a) * b)
            first = flat[p] * wp + flat[q] * wq + flat[r] * wr + flat[s] * ws
            out[y, x, 0] = np.uint8((first >> shift) & byte)
            if channels > 1:
                out[y, x, 1] = np.uint8((first >> lane) & byte)
            if channels > 2:
                second = flat[p | ONE] * wp + flat[q | ONE] * wq + flat[r | ONE] * wr + flat[s | ONE] * ws
                out[y, x, 2] = np.uint8((second >> shift) & byte)
                if channels > 3:
                    out[y, x, 3] = np.uint8((second >> lane) & byte)
