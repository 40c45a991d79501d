"""Styles drawn by formula, for when the user gives none: strokes, dots, weaves, cells and clouds in random palettes."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

COUNT = 256
SIDE = 192


@lru_cache(maxsize=64)
def drawn_style(index: int) -> Bytes:
    """Style number `index` (0 .. COUNT − 1), SIDE×SIDE×3; always the same for the same number."""
    rng = np.random.default_rng([0x57E1, index])
    painters = (_strokes, _dots, _weave, _cells, _clouds)
    field = painters[index % len(painters)](rng)
    field = field + 0.35 * _clouds(rng)
    low, high = np.quantile(field, [0.02, 0.98])
    field = np.clip((field - low) / max(high - low, 1e-6), 0, 1)
    palette = _palette(rng)
    place = field * (len(palette) - 1)
    base = np.minimum(place.astype(np.int64), len(palette) - 2)
    part = (place - base)[..., None]
    image = palette[base] * (1 - part) + palette[base + 1] * part
    image += 6 * rng.standard_normal((SIDE, SIDE, 1))
    return np.clip(image, 0, 255).astype(np.uint8)


def _palette(rng: np.random.Generator) -> Floats:
    """Four to six colours, dark to light, about two hues."""
    hues = rng.uniform(0, 180, 2)
    count = int(rng.integers(4, 7))
    hue = np.where(rng.random(count) < 0.5, hues[0], hues[1]) + rng.normal(0, 8, count)
    value = np.sort(rng.uniform(30, 255, count))
    hsv = np.stack([hue % 180, rng.uniform(40, 230, count), value], axis=1)
    rgb = cv2.cvtColor(hsv[None].astype(np.uint8), cv2.COLOR_HSV2RGB)[0]
    return np.asarray(rgb, dtype=np.float32)


def _clouds(rng: np.random.Generator) -> Floats:
    """Noise with power 1/f²…1/f³; unit variance."""
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE))
    frequency[0, 0] = 1.0
    spectrum = np.fft.rfft2(rng.standard_normal((SIDE, SIDE))) * frequency ** -rng.uniform(1.0, 1.5)
    spectrum[0, 0] = 0
    noise = np.fft.irfft2(spectrum, (SIDE, SIDE))
    return np.asarray(noise / noise.std(), dtype=np.float32)


def _strokes(rng: np.random.Generator) -> Floats:
    """Brush strokes that follow a flow."""
    canvas = _clouds(rng)
    flow = _clouds(rng) * rng.uniform(0.2, 1.2) + rng.uniform(0, math.pi)
    length, thick = rng.uniform(8, 26), int(rng.integers(2, 6))
    for _ in range(900):
        x, y = rng.integers(0, SIDE, 2)
        angle = float(flow[y, x])
        end = round(x + length * math.cos(angle)), round(y + length * math.sin(angle))
        cv2.line(canvas, (int(x), int(y)), end, float(canvas[y, x] + rng.normal(0, 0.8)), thick, cv2.LINE_8)
    return canvas


def _dots(rng: np.random.Generator) -> Floats:
    canvas = 0.5 * _clouds(rng)
    size = rng.uniform(2, 7)
    for _ in range(int(9000 / size**1.5)):
        x, y = rng.integers(0, SIDE, 2)
        cv2.circle(
            canvas, (int(x), int(y)), max(1, round(size * rng.uniform(0.6, 1.3))), rng.normal(0, 1.2), -1
        )
    return canvas


def _weave(rng: np.random.Generator) -> Floats:
    """Two or three gratings with wavering lines."""
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    total = np.zeros((SIDE, SIDE), np.float32)
    for _ in range(int(rng.integers(2, 4))):
        angle, period = rng.uniform(0, math.pi), rng.uniform(5, 20)
        phase = (x * math.cos(angle) + y * math.sin(angle)) * (2 * math.pi / period)
        wave = np.sin(phase + rng.uniform(0.3, 2.0) * _clouds(rng))
        total = np.maximum(total, wave) if rng.random() < 0.5 else total + wave
    return np.asarray(total, dtype=np.float32)


def _cells(rng: np.random.Generator) -> Floats:
    """Distance to the nearest and second nearest of scattered points: scales, pebbles, cracked ground."""
    points = rng.uniform(0, SIDE, (int(rng.integers(60, 260)), 2)).astype(np.float32)
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    far = (y.reshape(-1, 1) - points[:, 0]) ** 2 + (x.reshape(-1, 1) - points[:, 1]) ** 2
    near = np.sqrt(np.partition(far, 1, axis=1)[:, :2])
    ridge = (near[:, 1] - near[:, 0]) if rng.random() < 0.5 else near[:, 0]
    tone = rng.normal(0, 0.5, len(points))[far.argmin(axis=1)]
    return np.asarray((ridge / ridge.std() + tone).reshape(SIDE, SIDE), dtype=np.float32)
