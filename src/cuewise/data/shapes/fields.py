"""A signed distance table for each outline, in exact integer arithmetic."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cuewise.data.shapes.outlines import SHAPES, outlines
from cuewise.kernels import kernel, part

CELL_BITS = 9  # a table cell is 512 object units
EDGE = 36864  # the table spans −EDGE..EDGE, a margin of 15 % around the sheet
NODES = 2 * (EDGE >> CELL_BITS) + 1
FAR = 32000  # distances are clipped here, so that they fit 16 bits

Fields = NDArray[np.int16]  # shapes × NODES (y) × NODES (x); negative inside


@part
def segment_distance2(x: int, y: int, ax: int, ay: int, bx: int, by: int) -> int:
    """Squared distance (floor) of (x, y) to the segment a–b."""
    ex, ey, px, py = bx - ax, by - ay, x - ax, y - ay
    length, along = ex * ex + ey * ey, px * ex + py * ey
    if along <= 0:
        return px * px + py * py
    if along >= length:
        return (x - bx) * (x - bx) + (y - by) * (y - by)
    cross = abs(ex * py - ey * px)
    if cross < 2147483648:  # the square must stay below 2⁶³
        return cross * cross // length
    return (cross >> 4) * (cross >> 4) // (length >> 8)


@kernel
def polygon_distance(points: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """out[j, i] = signed distance (floor) of node (i, j) to a closed polygon, negative inside."""
    for j in range(out.shape[0]):
        y = (j << CELL_BITS) - EDGE
        for i in range(out.shape[1]):
            x = (i << CELL_BITS) - EDGE
            nearest, inside = 1 << 40, False
            ax, ay = points[-1, 0], points[-1, 1]
            for k in range(len(points)):
                bx, by = points[k, 0], points[k, 1]
                gap_x = max(0, min(ax, bx) - x, x - max(ax, bx))
                gap_y = max(0, min(ay, by) - y, y - max(ay, by))
                if gap_x * gap_x + gap_y * gap_y < nearest:  # else the segment's box is too far already
                    nearest = min(nearest, segment_distance2(x, y, ax, ay, bx, by))
                if (ay > y) != (by > y):
                    cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
                    inside ^= (cross > 0) == (by > ay)  # a ray to the right crosses this edge
                ax, ay = bx, by
            root = int(np.sqrt(np.float64(nearest)))  # correctly rounded by IEEE 754; nearest < 2⁵³
            out[j, i] = -root if inside else root


@lru_cache(maxsize=1)
def distance_fields() -> Fields:
    """The table of every outline; a union is a minimum, a cut the maximum with the negated distance."""
    tables = np.empty((len(SHAPES), NODES, NODES), np.int16)
    for index, parts in enumerate(outlines()):
        d = np.full((NODES, NODES), FAR, np.int64)
        for piece in parts:
            p = np.empty((NODES, NODES), np.int64)
            polygon_distance(piece.points, p)
            d = np.minimum(d, p) if piece.adds else np.maximum(d, -p)
        tables[index] = np.clip(d, -FAR, FAR)
    return tables
