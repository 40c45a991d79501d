"""A signed distance table for each outline, in exact integer arithmetic."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.data.shapes.outlines import SHAPES, Points, outlines

CELL_BITS = 9  # a table cell is 512 object units
EDGE = 36864  # the table spans −EDGE..EDGE, a margin of 15 % around the sheet
NODES = 2 * (EDGE >> CELL_BITS) + 1
FAR = 32000  # distances are clipped here, so that they fit 16 bits

Fields = NDArray[np.int16]  # shapes × NODES (y) × NODES (x); negative inside


@njit(cache=True, nogil=True)
def polygon_distance(points: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """out[j, i] = signed distance (floor) of node (i, j) to a closed polygon, negative inside."""
    n = len(points)
    for j in range(out.shape[0]):
        y = (j << CELL_BITS) - EDGE
        for i in range(out.shape[1]):
            x = (i << CELL_BITS) - EDGE
            nearest = np.int64(1) << 40
            inside = False
            for k in range(n):
                ax, ay = points[k, 0], points[k, 1]
                bx, by = points[(k + 1) % n, 0], points[(k + 1) % n, 1]
                ex, ey, px, py = bx - ax, by - ay, x - ax, y - ay
                length, along = ex * ex + ey * ey, px * ex + py * ey
                cross = ex * py - ey * px
                if along <= 0:
                    d2 = px * px + py * py
                elif along >= length:
                    d2 = (x - bx) * (x - bx) + (y - by) * (y - by)
                else:
                    c = abs(cross)
                    # cross² must stay below 2⁶³
                    d2 = c * c // length if c < 2147483648 else (c >> 4) * (c >> 4) // (length >> 8)
                nearest = min(nearest, d2)
                if (ay > y) != (by > y) and (cross > 0) == (ey > 0):
                    inside = not inside
            root = np.int64(np.sqrt(np.float64(nearest)))  # correctly rounded by IEEE 754; nearest < 2⁵³
            out[j, i] = -root if inside else root


def _signed(points: Points) -> NDArray[np.int64]:
    out = np.empty((NODES, NODES), np.int64)
    polygon_distance(points, out)
    return out


@lru_cache(maxsize=1)
def distance_fields() -> Fields:
    """The table of every outline; a union is a minimum, a cut the maximum with the negated distance."""
    tables = np.empty((len(SHAPES), NODES, NODES), np.int16)
    for index, parts in enumerate(outlines()):
        d = np.full((NODES, NODES), FAR, np.int64)
        for part in parts:
            p = _signed(part.points)
            d = np.minimum(d, p) if part.adds else np.maximum(d, -p)
        tables[index] = np.clip(d, -FAR, FAR)
    return tables
