"""Painting: backgrounds, textured objects, silhouettes and strokes, all in integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.data.shapes.fields import CELL_BITS, EDGE, NODES
from cuewise.data.shapes.hashing import draw, mix
from cuewise.data.shapes.textures import SINE, TURN, noise, texture_at

FRAME = 65536  # the picture spans 0..FRAME whatever its size in pixels
TEXTURED, SILHOUETTE, SKETCH = 0, 1, 2

Ints = NDArray[np.int64]
# A pose: centre x, centre y, angle (of TURN), scale (2.14, object → frame), mirror (±1), bend (object units)
POSE = 6


@njit(cache=True, nogil=True, inline="always")
def sine(angle: int) -> int:
    return SINE[angle & (TURN - 1)]


@njit(cache=True, nogil=True, inline="always")
def cosine(angle: int) -> int:
    return SINE[(angle + TURN // 4) & (TURN - 1)]


@njit(cache=True, nogil=True)
def colour(luma: int, chroma: int, hue: int, out: Ints) -> None:
    """R, G, B of a luma 0..255 and a hue angle (of TURN) at a chroma radius (ITU-R BT.601 YCbCr)."""
    cb, cr = chroma * cosine(hue), chroma * sine(hue)  # 2.14
    out[0] = min(255, max(0, luma + ((cr * 1436) >> 24)))
    out[1] = min(255, max(0, luma - ((cb * 352 + cr * 731) >> 24)))
    out[2] = min(255, max(0, luma + ((cb * 1815) >> 24)))


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def background(out: NDArray[np.uint8], key: Any, base: Ints) -> None:
    """Plain, a linear gradient, or slow noise around one colour."""
    size = out.shape[0]
    kind, angle, depth = draw(key, 0, 0, 2), draw(key, 1, 0, TURN - 1), draw(key, 2, 24, 48)
    c, s, salt = cosine(angle), sine(angle), draw(key, 3, 0, 1 << 30)
    freq = draw(key, 4, 2, 4)
    for y in range(size):
        v = (2 * y + 1) * 32768 // size - 32768
        for x in range(size):
            u = (2 * x + 1) * 32768 // size - 32768
            offset = 0
            if kind == 1:
                offset = (((u * c + v * s) >> 14) * depth) >> 16
            elif kind == 2:
                p, q = (u * c + v * s) * freq >> 18, (v * c - u * s) * freq >> 18
                n = 2 * noise(p, q, salt) + noise(2 * p, 2 * q, salt + 1)
                offset = ((n - 6144) * depth) >> 13
            for k in range(3):
                out[y, x, k] = min(255, max(0, base[k] + offset))


@njit(cache=True, nogil=True)
def texture_frame(key: Any, size: int, frame: Ints) -> None:
    """How texture coordinates lie on the picture: cos, sin, periods·256, phases, ramp slope, salt."""
    angle, periods = draw(key, 0, 0, TURN - 1), draw(key, 1, 1150, 1800)
    frame[0], frame[1], frame[2] = cosine(angle), sine(angle), periods
    frame[3], frame[4] = draw(key, 2, 0, (1 << 24) - 1), draw(key, 3, 0, (1 << 24) - 1)
    frame[5] = (256 << 16) * size // (periods * 16)  # a pixel is periods·16/size texture units
    frame[6] = draw(key, 4, 0, 1 << 30)


@njit(cache=True, nogil=True, inline="always")
def field_at(field: NDArray[np.int16], u: int, v: int) -> int:
    """Bilinear distance at an object point, in object units; far outside beyond the table."""
    i, j = (u + EDGE) >> CELL_BITS, (v + EDGE) >> CELL_BITS
    if i < 0 or j < 0 or i >= NODES - 1 or j >= NODES - 1:
        return 32000
    f, g = (u + EDGE) & 511, (v + EDGE) & 511
    top = np.int64(field[j, i]) * (512 - f) + np.int64(field[j, i + 1]) * f
    bottom = np.int64(field[j + 1, i]) * (512 - f) + np.int64(field[j + 1, i + 1]) * f
    return int((top * (512 - g) + bottom * g) >> 18)


@njit(cache=True, nogil=True)
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
    size = out.shape[0]
    frame = np.empty(7, np.int64)
    texture_frame(mix(key, np.uint64(1)), size, frame)
    c, s, scale, bend = cosine(pose[2]), sine(pose[2]), pose[3], pose[5]
    inverse = (1 << 28) // scale
    wave1, wave2 = draw(key, 2, 0, TURN - 1), draw(key, 3, 0, TURN - 1)
    stroke = max(750, FRAME // (2 * size))
    reach = (scale * 52000 >> 14) + FRAME // size  # half diagonal of the table, and a pixel
    low_y, high_y = max(0, (pose[1] - reach) * size >> 16), min(size, ((pose[1] + reach) * size >> 16) + 1)
    low_x, high_x = max(0, (pose[0] - reach) * size >> 16), min(size, ((pose[0] + reach) * size >> 16) + 1)
    for y in range(low_y, high_y):
        fy = (2 * y + 1) * 32768 // size
        for x in range(low_x, high_x):
            fx = (2 * x + 1) * 32768 // size
            dx, dy = fx - pose[0], fy - pose[1]
            u = pose[4] * (((dx * c + dy * s) >> 14) * inverse >> 14)
            v = ((dy * c - dx * s) >> 14) * inverse >> 14
            if bend > 0:
                u, v = u + (bend * sine((v >> 4) + wave1) >> 14), v + (bend * sine((u >> 4) + wave2) >> 14)
            d = field_at(field, u, v) * scale >> 14
            if mode == SKETCH:
                d = abs(d) - stroke
            cover = min(256, max(0, 128 - (d * size >> 8)))
            if cover == 0:
                continue
            t, shade = 0, 0
            if mode == TEXTURED:
                p = ((fx * frame[0] + fy * frame[1]) >> 14) * frame[2] >> 12
                q = ((fy * frame[0] - fx * frame[1]) >> 14) * frame[2] >> 12
                t, shade = texture_at(texture, p + frame[3], q + frame[4], frame[5], frame[6])
            for k in range(3):
                value = min(255, max(0, colours[0, k] + ((colours[1, k] - colours[0, k]) * t >> 8) + shade))
                under = np.int64(out[y, x, k])
                out[y, x, k] = under + ((value - under) * cover >> 8)


@njit(cache=True, nogil=True)
def paint_texture(out: NDArray[np.uint8], texture: int, key: Any, colours: Ints) -> None:
    """Fill the picture with a texture."""
    size = out.shape[0]
    frame = np.empty(7, np.int64)
    texture_frame(mix(key, np.uint64(1)), size, frame)
    for y in range(size):
        fy = (2 * y + 1) * 32768 // size
        for x in range(size):
            fx = (2 * x + 1) * 32768 // size
            p = ((fx * frame[0] + fy * frame[1]) >> 14) * frame[2] >> 12
            q = ((fy * frame[0] - fx * frame[1]) >> 14) * frame[2] >> 12
            t, shade = texture_at(texture, p + frame[3], q + frame[4], frame[5], frame[6])
            for k in range(3):
                value = colours[0, k] + ((colours[1, k] - colours[0, k]) * t >> 8) + shade
                out[y, x, k] = min(255, max(0, value))
