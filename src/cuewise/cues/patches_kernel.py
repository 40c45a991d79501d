"""Copy square patches into a canvas: bytes only, so any number type and any number of channels."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def tile(source: Bytes, pixel: int, d: int, tops: Ints, lefts: Ints, out: Bytes) -> None:
    """Row copies of d×d patches, row by row from the top left; the last ones are cut at the border.

    source: H×(W·pixel) bytes, out: h×(w·pixel) bytes, pixel: bytes of one pixel.
    """
    height, width = out.shape[0], out.shape[1]
    side = d * pixel
    columns = (width + side - 1) // side
    for y in range(height):
        row = y // d
        for column in range(columns):
            patch = row * columns + column
            x0 = column * side
            n = min(side, width - x0)
            line = source[tops[patch] + y - row * d]
            start = lefts[patch] * pixel
            out[y, x0 : x0 + n] = line[start : start + n]


@njit(cache=True, nogil=True)
def tile_turned(
    source: Bytes,
    pixel: int,
    d: int,
    tops: Ints,
    lefts: Ints,
    turns: Ints,
    vflips: Ints,
    hflips: Ints,
    out: Bytes,
) -> None:
    """The same with every patch turned by 90° · turns (counter-clockwise), then flipped up-down, left-right."""
    height, width = out.shape[0], out.shape[1] // pixel
    columns = (width + d - 1) // d
    for patch in range(tops.size):
        y0, x0 = (patch // columns) * d, (patch % columns) * d
        for y in range(min(d, height - y0)):
            v = d - 1 - y if vflips[patch] else y
            for x in range(min(d, width - x0)):
                u = d - 1 - x if hflips[patch] else x
                if turns[patch] == 0:
                    sy, sx = v, u
                elif turns[patch] == 1:
                    sy, sx = u, d - 1 - v
                elif turns[patch] == 2:
                    sy, sx = d - 1 - v, d - 1 - u
                else:
                    sy, sx = d - 1 - u, v
                to = (x0 + x) * pixel
                start = (lefts[patch] + sx) * pixel
                for b in range(pixel):
                    out[y0 + y, to + b] = source[tops[patch] + sy, start + b]
