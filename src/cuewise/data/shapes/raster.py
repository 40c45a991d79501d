"""Painting: backgrounds, textured objects, silhouettes and strokes, all in integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.shapes.fields import CELL_BITS, EDGE, NODES
from cuewise.data.shapes.hashing import draw, mix
from cuewise.data.shapes.textures import SINE, TURN, noise, texture_at
from cuewise.kernels import kernel, part

FRAME = 65536  # the picture spans 0..FRAME whatever its size in pixels
TEXTURED, SILHOUETTE, SKETCH = 0, 1, 2

Ints = NDArray[np.int64]
# A pose: centre x, centre y, angle (of TURN), scale (2.14, object → frame), mirror (±1), bend (object units)
POSE = 6


@part
def sine(angle: int) -> int:
    return SINE[angle & (TURN - 1)]


@part
def cosine(angle: int) -> int:
    return SINE[(angle + TURN // 4) & (TURN - 1)]


@part
def blend(under: int, over: int, share: int) -> int:
    """`share`/256 of `over` (clipped to 0..255) upon `under`."""
    return int(np.int64(under) + ((min(255, max(0, over)) - np.int64(under)) * share >> 8))


@part
def centres(size: int) -> Ints:
    """Where the middle of each pixel lies on 0..FRAME."""
    at = np.empty(size, np.int64)
    for k in range(size):
        at[k] = (2 * k + 1) * (FRAME // 2) // size
    return at


@part
def colour(luma: int, chroma: int, hue: int, out: Ints) -> None:
    """R, G, B of a luma 0..255 and a hue angle (of TURN) at a chroma radius (ITU-R BT.601 YCbCr)."""
    cb, cr = chroma * cosine(hue), chroma * sine(hue)  # 2.14
    out[0] = min(255, max(0, luma + ((cr * 1436) >> 24)))
    out[1] = min(255, max(0, luma - ((cb * 352 + cr * 731) >> 24)))
    out[2] = min(255, max(0, luma + ((cb * 1815) >> 24)))


@part
def palette(key: Any, ground: int, hue: int, colours: Ints) -> None:
    """Two object colours and a background, one dark, one middle, one light; `ground` is the background's rank.

    hue ≥ 0 fixes the hue of the object's colours and greys the background (the coloured split).
    """
    swap = draw(key, 0, 0, 1)
    for k in range(3):
        rank = ground if k == 2 else (ground + 1 + (k ^ swap)) % 3
        luma = draw(key, 4 + k, 0, 40) + (24 if rank == 0 else 110 if rank == 1 else 200)
        chroma, angle = draw(key, 8 + k, 10, 70 if k < 2 else 45), draw(key, 12 + k, 0, TURN - 1)
        if hue >= 0:
            chroma, angle = (draw(key, 8 + k, 45, 80), hue) if k < 2 else (0, 0)
        colour(luma, chroma, angle, colours[k])


@part
def plain(out: NDArray[np.uint8], base: Ints) -> None:
    """One colour everywhere."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            for k in range(3):
                out[y, x, k] = base[k]


@part
def background(out: NDArray[np.uint8], key: Any, base: Ints) -> None:
    """Plain, a linear gradient, or slow noise around one colour."""
    size = out.shape[0]
    kind, angle, depth = draw(key, 0, 0, 2), draw(key, 1, 0, TURN - 1), draw(key, 2, 24, 48)
    c, s, salt = cosine(angle), sine(angle), draw(key, 3, 0, 1 << 30)
    freq, at = draw(key, 4, 2, 4), centres(size)
    for y in range(size):
        v = at[y] - FRAME // 2
        for x in range(size):
            u = at[x] - FRAME // 2
            offset = 0
            if kind == 1:
                offset = (((u * c + v * s) >> 14) * depth) >> 16
            elif kind == 2:
                p, q = (u * c + v * s) * freq >> 18, (v * c - u * s) * freq >> 18
                n = 2 * noise(p, q, salt) + noise(2 * p, 2 * q, salt + 1)
                offset = ((n - 6144) * depth) >> 13
            for k in range(3):
                out[y, x, k] = min(255, max(0, base[k] + offset))


@part
def field_at(field: NDArray[np.int16], u: int, v: int) -> int:
    """Bilinear distance at an object point, in object units; far outside beyond the table."""
    i, j = (u + EDGE) >> CELL_BITS, (v + EDGE) >> CELL_BITS
    if i < 0 or j < 0 or i >= NODES - 1 or j >= NODES - 1:
        return 32000
    f, g = (u + EDGE) & 511, (v + EDGE) & 511
    top = np.int64(field[j, i]) * (512 - f) + np.int64(field[j, i + 1]) * f
    bottom = np.int64(field[j + 1, i]) * (512 - f) + np.int64(field[j + 1, i + 1]) * f
    return int((top * (512 - g) + bottom * g) >> 18)


@part
def coverage(field: NDArray[np.int16], pose: Ints, mode: int, key: Any, cover: Ints) -> None:
    """How much of each pixel the posed outline (or its stroke) covers, 0..256."""
    size, at = cover.shape[0], centres(cover.shape[0])
    left, top, scale, mirror, bend = pose[0], pose[1], pose[3], pose[4], pose[5]
    c, s, inverse = cosine(pose[2]), sine(pose[2]), (1 << 28) // scale
    wave1, wave2 = draw(key, 2, 0, TURN - 1), draw(key, 3, 0, TURN - 1)
    stroke = max(750, FRAME // (2 * size))
    reach = (scale * 52000 >> 14) + FRAME // size  # half diagonal of the table, and a pixel
    low_y, high_y = max(0, (top - reach) * size >> 16), min(size, ((top + reach) * size >> 16) + 1)
    low_x, high_x = max(0, (left - reach) * size >> 16), min(size, ((left + reach) * size >> 16) + 1)
    for y in range(size):
        for x in range(size):
            cover[y, x] = 0
    for y in range(low_y, high_y):
        dy = at[y] - top
        for x in range(low_x, high_x):
            dx = at[x] - left
            u = mirror * (((dx * c + dy * s) >> 14) * inverse >> 14)
            v = ((dy * c - dx * s) >> 14) * inverse >> 14
            if bend > 0:
                u, v = u + (bend * sine((v >> 4) + wave1) >> 14), v + (bend * sine((u >> 4) + wave2) >> 14)
            d = field_at(field, u, v) * scale >> 14
            if mode == SKETCH:
                d = abs(d) - stroke
            cover[y, x] = min(256, max(0, 128 - (d * size >> 8)))


@part
def fill(out: NDArray[np.uint8], cover: Ints, texture: int, key: Any, colours: Ints) -> None:
    """Blend a texture of two colours (the first colour alone when texture < 0) over `out`."""
    size, at = out.shape[0], centres(out.shape[0])
    # periods per frame, ·256
    angle, periods = draw(key, 0, -TURN // 12, TURN // 12), draw(key, 1, 1700, 2150)
    c, s, salt = cosine(angle), sine(angle), draw(key, 4, 0, 1 << 30)
    phase_p, phase_q = draw(key, 2, 0, (1 << 24) - 1), draw(key, 3, 0, (1 << 24) - 1)
    slope = (256 << 16) * size // (periods * 16)  # a pixel is periods·16/size texture units
    r, g, b = colours[0, 0], colours[0, 1], colours[0, 2]
    dr, dg, db = colours[1, 0] - r, colours[1, 1] - g, colours[1, 2] - b
    for y in range(size):
        fy = at[y]
        for x in range(size):
            share = cover[y, x]
            if share == 0:
                continue
            t, shade = 0, 0
            if texture >= 0:
                p = (((at[x] * c + fy * s) >> 14) * periods >> 12) + phase_p
                q = (((fy * c - at[x] * s) >> 14) * periods >> 12) + phase_q
                t, shade = texture_at(texture, p, q, slope, salt)
            out[y, x, 0] = blend(out[y, x, 0], r + (dr * t >> 8) + shade, share)
            out[y, x, 1] = blend(out[y, x, 1], g + (dg * t >> 8) + shade, share)
            out[y, x, 2] = blend(out[y, x, 2], b + (db * t >> 8) + shade, share)


@kernel
def paint(
    out: NDArray[np.uint8],
    field: NDArray[np.int16],
    pose: Ints,
    mode: int,
    texture: int,
    key: Any,
    colours: Ints,
) -> None:
    """Blend one object over `out`."""
    cover = np.empty((out.shape[0], out.shape[1]), np.int64)
    coverage(field, pose, mode, key, cover)
    fill(out, cover, texture if mode == TEXTURED else -1, mix(key, np.uint64(1)), colours)


@part
def paint_texture(out: NDArray[np.uint8], texture: int, key: Any, colours: Ints) -> None:
    """Fill the picture with a texture."""
    cover = np.full((out.shape[0], out.shape[1]), 256, np.int64)
    fill(out, cover, texture, mix(key, np.uint64(1)), colours)
