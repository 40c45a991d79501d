"""The sixteen textures, as integer functions of a point: how much of the second colour, and how bright."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cuewise.data.shapes.hashing import lattice
from cuewise.kernels import part

# Class k's own texture is TEXTURES[k] (a fish has scales, a house bricks).
TEXTURES: tuple[str, ...] = (
    "dots", "scales", "bricks", "granite", "wood", "leopard", "waves", "checks",
    "cracks", "stripes", "marble", "hatch", "clouds", "fur", "plaid", "weave",
)  # fmt: skip

P = 4096  # one period of a texture, in texture units
TURN = 4096  # table steps in a full turn

# sin·2¹⁴, rounded: no value lies near enough to a half for the platform's sine to matter.
SINE = np.array([round(16384 * math.sin(2 * math.pi * k / TURN)) for k in range(TURN)], np.int64)


@part
def ramp(d: int, slope: int) -> int:
    """Antialiased step: 0..256 as d passes 0 within one pixel (slope = 2²⁴ / pixel in texture units)."""
    return min(256, max(0, 128 + ((d * slope) >> 16)))


@part
def band(p: int) -> int:
    """Distance into the middle half of each period: 1024 at its centre, 0 at its borders, −1024 outside."""
    return 1024 - abs((p & 4095) - 2048)


@part
def root(x: int) -> int:
    """⌊√x⌋ for x < 2⁵²: IEEE 754's square root is correctly rounded everywhere."""
    return int(np.sqrt(np.float64(x)))


@part
def noise(p: int, q: int, key: int) -> int:
    """Smooth value noise in 0..4095, one random value per period."""
    x, y, f, g = p >> 12, q >> 12, p & 4095, q & 4095
    f = (((f * f) >> 12) * (12288 - 2 * f)) >> 12
    g = (((g * g) >> 12) * (12288 - 2 * g)) >> 12
    a, b = lattice(x, y, key) & 4095, lattice(x + 1, y, key) & 4095
    c, d = lattice(x, y + 1, key) & 4095, lattice(x + 1, y + 1, key) & 4095
    top, bottom = a + (((b - a) * f) >> 12), c + (((d - c) * f) >> 12)
    return top + (((bottom - top) * g) >> 12)


@part
def cells(p: int, q: int, key: int, jitter: int) -> Any:
    """Worley cells: distance to the nearest point, to the second nearest, and the nearest one's hash."""
    x, y = p >> 12, q >> 12
    first, second, owner = 1 << 40, 1 << 40, 0
    for j in range(y - 1, y + 2):
        for i in range(x - 1, x + 2):
            h = lattice(i, j, key)
            dx = (i << 12) + 2048 + ((((h & 1023) - 512) * jitter) >> 9) - p
            dy = (j << 12) + 2048 + (((((h >> 10) & 1023) - 512) * jitter) >> 9) - q
            d2 = dx * dx + dy * dy
            if d2 < first:
                first, second, owner = d2, first, h
            elif d2 < second:
                second = d2
    return root(first), root(second), owner


@part
def dots(p: int, q: int, slope: int, key: int) -> Any:
    row = q >> 12
    dx, dy = ((p + (row & 1) * 2048) & 4095) - 2048, (q & 4095) - 2048
    return ramp(1300 - root(dx * dx + dy * dy), slope), 0


@part
def scales(p: int, q: int, slope: int, key: int) -> Any:
    """Overlapping discs in rows half a period apart; the lower row covers the upper."""
    row = q >> 11
    for r in range(row, row - 3, -1):
        dx, dy = ((p + (r & 1) * 2048) & 4095) - 2048, q - (r << 11)
        d = root(dx * dx + dy * dy)
        if d < 2350:
            return ramp(d - 1900, slope), 24 - d // 40
    return 256, -34


@part
def bricks(p: int, q: int, slope: int, key: int) -> Any:
    p, q = (p * 3) >> 1, (q * 7) >> 2
    row = q >> 12
    x = p + (row & 1) * 4096
    fx, fy = x & 8191, q & 4095
    d = min(min(fx, 8192 - fx), min(fy, 4096 - fy))
    return ramp(330 - d, slope), (lattice(x >> 13, row, key) % 64 - 32) * (256 - ramp(330 - d, slope)) >> 8


@part
def granite(p: int, q: int, slope: int, key: int) -> Any:
    """Small chips of random shade."""
    _, _, owner = cells((p * 9) >> 2, (q * 9) >> 2, key, np.int64(1900))
    return ((owner >> 20) & 3) * 85, ((owner >> 24) & 63) - 32


@part
def wood(p: int, q: int, slope: int, key: int) -> Any:
    """Long grain: saw-toothed year rings bent by slow noise, with fine streaks."""
    g = q + 3 * noise(p >> 3, q >> 1, key) + (noise(p >> 1, q, key + 7) >> 2)
    f = g & 4095
    late = f >> 4 if f < 3584 else ((4096 - f) * 224) >> 9
    streak = noise(p >> 2, q * 6, key + 1)
    return min(256, late), (streak >> 6) - 32


@part
def leopard(p: int, q: int, slope: int, key: int) -> Any:
    """Rosettes: uneven, broken rings around scattered points, darker within."""
    p, q = (p * 5) >> 2, (q * 5) >> 2
    d, _, _ = cells(p, q, key, np.int64(1100))
    d += (noise(p * 2, q * 2, key + 3) - 2048) >> 2
    thick = (noise(p * 2, q * 2, key + 5) >> 2) - 120
    return ramp(thick - abs(d - 1050), slope), -(ramp(1050 - d, slope) >> 3)


@part
def waves(p: int, q: int, slope: int, key: int) -> Any:
    g = q + ((SINE[(p >> 1) & 4095] * 1500) >> 14)
    return ramp(band(g), slope), 0


@part
def checks(p: int, q: int, slope: int, key: int) -> Any:
    a, b = ramp(band(p), slope), ramp(band(q), slope)
    return a + b - ((a * b) >> 7), 0


@part
def cracks(p: int, q: int, slope: int, key: int) -> Any:
    p += (noise(p * 2, q * 2, key + 2) - 2048) >> 3
    q += (noise(p * 2, q * 2, key + 4) - 2048) >> 3
    d, e, owner = cells((p * 5) >> 2, (q * 5) >> 2, key, np.int64(1800))
    return ramp(300 - (e - d), slope), ((owner >> 20) & 31) - 16


@part
def stripes(p: int, q: int, slope: int, key: int) -> Any:
    return ramp(band(p), slope), 0


@part
def marble(p: int, q: int, slope: int, key: int) -> Any:
    """Thin veins of two sizes along the folds of warped noise."""
    p, q = (p * 5) >> 2, (q * 5) >> 2
    n = 2 * noise(p >> 1, q >> 1, key) + noise(p, q, key + 1) + (noise(p * 2, q * 2, key + 2) >> 1)
    vein = abs(((p + 2 * n) >> 1 & 4095) - 2048)
    fine = abs(((q + 3 * n) >> 1 & 4095) - 2048)
    a, b = max(0, 256 - vein // 2), max(0, 130 - fine // 2)
    return min(256, a + b), (noise(p >> 1, q >> 1, key + 3) >> 7) - 16


@part
def hatch(p: int, q: int, slope: int, key: int) -> Any:
    """Pen strokes in one direction, crossed where a slow noise is dark."""
    n = noise(p >> 1, q >> 1, key)
    first = ramp(260 - abs((2 * p & 4095) - 2048) // 2, slope)
    second = ramp(260 - abs((2 * q + p & 4095) - 2048) // 2 - (600 if n < 2048 else 0), slope)
    return max(first, second), 0


@part
def clouds(p: int, q: int, slope: int, key: int) -> Any:
    p, q = (p * 3) >> 2, (q * 3) >> 2
    n = 4 * noise(p, q, key) + 2 * noise(p * 2, q * 2, key + 1) + noise(p * 4, q * 4, key + 2)
    return min(256, max(0, (n - 9000) // 40)), 0


@part
def fur(p: int, q: int, slope: int, key: int) -> Any:
    """Two layers of tapering hairs, each lit towards its tip."""
    q += noise(p >> 2, q >> 1, key)
    for layer in range(2):
        across = q * 3 + 2048 * layer
        lane = across >> 12
        along = (p + (lattice(lane, layer, key) & 4095)) & 4095
        side = abs((across & 4095) - 2048)
        if side < 2048 - along // 2:
            return 32 + along // 19, -24 * layer - side // 64
    return 0, -40


@part
def plaid(p: int, q: int, slope: int, key: int) -> Any:
    """Tartan: a wide and a narrow band in both directions, laid over each other."""
    x, y = (p * 5 >> 3) & 4095, (q * 5 >> 3) & 4095
    a = max(ramp(700 - abs(x - 1200), slope), ramp(170 - abs(x - 3000), slope))
    b = max(ramp(700 - abs(y - 1200), slope), ramp(170 - abs(y - 3000), slope))
    return (a + b) >> 1, 0


@part
def weave(p: int, q: int, slope: int, key: int) -> Any:
    """Basket work: strands of three fibres going over and under."""
    over = ((p >> 12) + (q >> 12)) & 1
    across, along = (q & 4095, p & 4095) if over else (p & 4095, q & 4095)
    fibre = abs((3 * across & 4095) - 2048) >> 5
    bulge = abs(along - 2048) >> 5
    return 256 * over, 40 - fibre - bulge


@part
def texture_at(kind: int, p: int, q: int, slope: int, key: int) -> Any:
    """(share of the second colour 0..256, brightness −64..64) of texture `kind` at (p, q)."""
    if kind < 8:
        if kind == 0:
            return dots(p, q, slope, key)
        if kind == 1:
            return scales(p, q, slope, key)
        if kind == 2:
            return bricks(p, q, slope, key)
        if kind == 3:
            return granite(p, q, slope, key)
        if kind == 4:
            return wood(p, q, slope, key)
        if kind == 5:
            return leopard(p, q, slope, key)
        if kind == 6:
            return waves(p, q, slope, key)
        return checks(p, q, slope, key)
    if kind == 8:
        return cracks(p, q, slope, key)
    if kind == 9:
        return stripes(p, q, slope, key)
    if kind == 10:
        return marble(p, q, slope, key)
    if kind == 11:
        return hatch(p, q, slope, key)
    if kind == 12:
        return clouds(p, q, slope, key)
    if kind == 13:
        return fur(p, q, slope, key)
    if kind == 14:
        return plaid(p, q, slope, key)
    return weave(p, q, slope, key)
