"""Compiled parts of the object proposals: normed gradients, the 8×8 template, local maxima, overlap suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import FAST

Floats = NDArray[np.float32]
U = np.uint64  # unsigned indices spare numba's check for negative ones
SIDE = 8  # of the template
PAD = 16  # columns beyond the map that the vectorised loops may read


@njit(cache=True, nogil=True, inline="always")
def add_largest(one: Any, begin: Any, other: Any, at: Any, n: Any, out: Floats, to: Any) -> None:
    """out[to + i] += the largest of the three channels' |one − other|, for n pixels; rows of bytes r g b r g b …"""
    for i in range(n):
        j, k = U(begin + 3 * i), U(at + 3 * i)
        r = abs(np.int32(one[j]) - np.int32(other[k]))
        g = abs(np.int32(one[j + U(1)]) - np.int32(other[k + U(1)]))
        b = abs(np.int32(one[j + U(2)]) - np.int32(other[k + U(2)]))
        out[U(to + i)] += np.float32(max(r, max(g, b)))


@njit(cache=True, nogil=True)
def normed_gradients(image: Any, out: Floats) -> None:
    """min(|g_x| + |g_y|, 255) of an H×W×3 uint8 image, each the largest of the channels' central differences.  out  H×(W + PAD)

    At the border the one-sided difference is doubled.
    """
    height, width = image.shape[0], image.shape[1]
    flat = image.reshape(height, 3 * width)
    for y in range(height):
        row, line = flat[y], out[y]
        line[:] = 0
        add_largest(flat[min(y + 1, height - 1)], 0, flat[max(y - 1, 0)], 0, width, line, 0)
        if y == 0 or y == height - 1:
            line *= np.float32(2)
        if width > 1:
            add_largest(row, 6, row, 0, width - 2, line, 1)
            for x, left in ((0, 0), (width - 1, 3 * width - 6)):
                for _ in range(2):
                    add_largest(row, left + 3, row, left, 1, line, x)
        for x in range(width):
            line[x] = min(line[x], np.float32(255))


@njit(cache=True, nogil=True, fastmath=FAST)
def add_row(row: Floats, t: Floats, n: Any, total: Floats) -> None:
    """total[x] += Σ_i t[i]·row[x + i]: eight taps in one pass over the row."""
    a, b, c, d, e, f, g, h = t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]
    for x in range(n):
        j = U(x)
        total[j] += (a * row[j] + b * row[j + U(1)] + c * row[j + U(2)] + d * row[j + U(3)]) + (
            e * row[j + U(4)] + f * row[j + U(5)] + g * row[j + U(6)] + h * row[j + U(7)]
        )


@njit(cache=True, nogil=True)
def template_scores(gradients: Floats, width: int, template: Floats) -> Floats:
    """Correlation with the template at every place where it fits: (H − 7)×(W − 7).  gradients  H×(W + PAD)"""
    rows, columns = gradients.shape[0] - SIDE + 1, width - SIDE + 1
    out = np.zeros((rows, columns), np.float32)
    for y in range(rows):
        for i in range(SIDE):
            add_row(gradients[y + i], template[i], columns, out[y])
    return out


@njit(cache=True, nogil=True, fastmath=FAST)
def larger(values: Floats, shift: Any, n: Any, out: Floats) -> None:
    """out[i] = max(out[i], values[i + shift]) for n numbers."""
    for i in range(n):
        out[U(i)] = max(out[U(i)], values[U(i + shift)])


@njit(cache=True, nogil=True)
def row_maxima(scores: Floats, radius: int) -> Floats:
    """The largest value within `radius` in the same row."""
    height, width = scores.shape
    out = scores.copy()
    for y in range(height):
        for shift in range(1, min(radius, width - 1) + 1):
            larger(scores[y], shift, width - shift, out[y])
            larger(scores[y], 0, width - shift, out[y, shift:])
    return out


@njit(cache=True, nogil=True)
def local_maxima(scores: Floats, radius: int) -> Any:
    """Places (y, x) that are the largest within `radius` in both directions; of equal ones the first in reading order."""
    height, width = scores.shape
    rows, most = row_maxima(scores, radius), np.empty(width, np.float32)
    apart = radius + 1
    # no more can be
    found = np.empty((((height + radius) // apart) * ((width + radius) // apart), 2), np.int32)
    count = 0
    for y in range(height):
        top, bottom = max(y - radius, 0), min(y + radius, height - 1)
        most[:] = rows[top]
        for v in range(top + 1, bottom + 1):
            larger(rows[v], 0, width, most)
        for x in range(width):
            s = scores[y, x]
            if s == most[x] and not equal_before(scores, y, x, top, radius, s):
                found[count, 0], found[count, 1] = y, x
                count += 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def equal_before(scores: Floats, y: int, x: int, top: int, radius: int, s: Any) -> bool:
    """Whether the same value stands earlier in reading order within `radius`."""
    left, right = max(x - radius, 0), min(x + radius, scores.shape[1] - 1)
    for v in range(top, y + 1):
        for u in range(left, right + 1):
            if (v < y or u < x) and scores[v, u] == s:
                return True
    return False


@njit(cache=True, nogil=True)
def suppress(boxes: Any, overlap: Any, most: int) -> Any:
    """Which boxes (xmin, ymin, xmax, ymax, best first) remain when each removes those that overlap it more; at most `most`."""
    kept = np.empty(min(most, len(boxes)), np.int64)
    count = 0
    for i in range(len(boxes)):
        if count == most:
            break
        area = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        free = True
        for k in range(count):
            j = kept[k]
            w = min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
            h = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
            if w > 0 and h > 0:
                both = w * h
                other = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                if both > overlap * (area + other - both):
                    free = False
                    break
        if free:
            kept[count] = i
            count += 1
    return kept[:count].copy()
