"""Sheets of frost: the user's photographs, or five drawn ones (ice crystals on frozen fractal ground)."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from cuewise.cues.corruptions.source import Bytes, Floats
from cuewise.errors import UserError

ENDINGS = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"}
DRAWN = 5
SHEET = (448, 640)
MEANS = (
    135.0,
    195.0,
    205.0,
    150.0,
    120.0,
)  # sheets from a thin to a thick layer, as photographs of frost range
SPREADS = (24.0, 24.0, 26.0, 32.0, 44.0)
TINT = (-17.0, 3.0, 14.0)  # ice is bluish


@lru_cache(maxsize=8)
def photographs(folder: str) -> tuple[Path, ...]:
    """The pictures in a folder, sorted by name."""
    path = Path(folder)
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in ENDINGS) if path.is_dir() else []
    if not found:
        raise UserError(
            f"frost_images: no pictures in {folder!r}; give a folder of frost photographs, or none"
        )
    return tuple(found)


@lru_cache(maxsize=16)
def _sheet(folder: str | None, index: int) -> Bytes:
    if folder is None:
        return draw_frost(index)
    path = photographs(folder)[index]
    try:
        with Image.open(path) as picture:
            return np.array(picture.convert("RGB"))
    except OSError as error:
        raise UserError(
            f"frost_images: cannot read {str(path)!r} ({error}); remove it from the folder"
        ) from error


@lru_cache(maxsize=32)
def _resized(folder: str | None, index: int, height: int, width: int) -> Bytes:
    sheet = cv2.resize(_sheet(folder, index), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.asarray(sheet, dtype=np.uint8)


def frost_sheet(folder: str | None, height: int, width: int, scale: float, rng: np.random.Generator) -> Bytes:
    """A random sheet, enlarged by a tenth, or by as much more as the image needs to fit into it."""
    count = DRAWN if folder is None else len(photographs(folder))
    index = int(rng.integers(count))
    tall, wide = _sheet(folder, index).shape[:2]
    factor = 1.1 * max(scale, height / tall, width / wide)
    return _resized(folder, index, math.ceil(tall * factor), math.ceil(wide * factor))


def cut(sheet: Bytes, height: int, width: int, rng: np.random.Generator) -> Bytes:
    """A random H×W window of the sheet."""
    top = int(rng.integers(max(sheet.shape[0] - height, 1)))
    left = int(rng.integers(max(sheet.shape[1] - width, 1)))
    return np.ascontiguousarray(sheet[top : top + height, left : left + width])


def draw_frost(index: int) -> Bytes:
    """One of the drawn sheets; always the same for the same index."""
    rng = np.random.default_rng([0xF205, index])
    ground = _fractal(rng)
    crystals = np.zeros(SHEET, np.float32)
    for _ in range(110 + 30 * index):
        at = rng.uniform(0, SHEET[1]), rng.uniform(0, SHEET[0])
        _grow(crystals, at, rng.uniform(0, 2 * math.pi), rng.uniform(40, 140), 3, rng)
    crystals = cv2.GaussianBlur(crystals, (0, 0), 0.8) + 0.6 * cv2.GaussianBlur(crystals, (0, 0), 4)
    layer = ground + 1.2 * (crystals - crystals.mean()) / crystals.std()
    layer = np.tanh(0.6 * (layer - layer.mean()) / layer.std())
    layer = (layer - layer.mean()) / layer.std() * SPREADS[index] + MEANS[index]
    return np.clip(layer[:, :, None] + np.array(TINT, np.float32), 0, 255).astype(np.uint8)


def _fractal(rng: np.random.Generator) -> Floats:
    """Gaussian noise whose power falls as 1/f^2.5, the slope of photographs of frost; unit variance."""
    down, right = np.fft.fftfreq(SHEET[0])[:, None], np.fft.rfftfreq(SHEET[1])
    frequency = np.maximum(np.hypot(down, right), 1.0 / max(SHEET))
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(SHEET)) * frequency**-1.25, SHEET)
    return np.asarray(noise / noise.std(), dtype=np.float32)


def _grow(
    canvas: Floats, at: tuple[float, float], angle: float, length: float, depth: int, rng: np.random.Generator
) -> None:
    """A needle of ice with side branches at 60°, drawn into the canvas."""
    end = at[0] + length * math.cos(angle), at[1] + length * math.sin(angle)
    points = [(round(16 * x), round(16 * y)) for x, y in (at, end)]  # cv2: coordinates in sixteenths
    cv2.line(canvas, points[0], points[1], 0.45 + 0.1 * depth, 1, cv2.LINE_8, 4)
    if depth == 0 or length < 6:
        return
    for place in np.arange(0.15, 0.95, 8.0 / length + 0.08):
        root = at[0] + place * (end[0] - at[0]), at[1] + place * (end[1] - at[1])
        for side in (-1, 1):
            if rng.random() < 0.6:
                twig = (1 - place) * length * rng.uniform(0.25, 0.5)
                _grow(canvas, root, angle + side * math.pi / 3, twig, depth - 1, rng)
