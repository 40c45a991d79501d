"""Digital corruptions: contrast, elastic transform, pixelate, JPEG; and saturation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.corruptions.filters import byte
from cuewise.cues.corruptions.lanes import displace
from cuewise.cues.corruptions.source import REFERENCE_SIDE, Bytes, CorruptionInput, Floats

CONTRAST = (0.4, 0.3, 0.2, 0.1, 0.05)
SATURATE = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))  # saturation × a + b
JPEG = (25, 18, 15, 10, 7)  # quality
PIXELATE = (0.6, 0.5, 0.4, 0.3, 0.25)  # side of the small copy
ELASTIC = (12.5, 16.25, 21.25, 25.0, 30.0)  # α; uniform moves of ±0.005 H, blurred with σ = 0.01 side


def contrast(source: CorruptionInput, severity: int) -> Bytes:
    """(v − mean) · c + mean: a table of 256 values per channel."""
    c = CONTRAST[severity - 1]
    table = (np.arange(256)[:, None] - source.means) * c + source.means
    lut = np.clip(table + 1e-6, 0, 255).astype(np.uint8)  # 256×C
    out = np.empty_like(source.image)
    look_up(source.image.reshape(-1, source.channels), lut, out.reshape(-1, source.channels))
    return out


@njit(cache=True, nogil=True)
def look_up(pixels: Bytes, lut: Bytes, out: Bytes) -> None:
    """out[p, c] = lut[pixels[p, c], c]."""
    if pixels.shape[1] == 3:
        for p in range(np.uint64(pixels.shape[0])):
            out[p, 0] = lut[np.uint64(pixels[p, 0]), 0]
            out[p, 1] = lut[np.uint64(pixels[p, 1]), 1]
            out[p, 2] = lut[np.uint64(pixels[p, 2]), 2]
        return
    for p in range(pixels.shape[0]):
        for c in range(pixels.shape[1]):
            out[p, c] = lut[pixels[p, c], c]


@njit(cache=True, nogil=True)
def to_fields(numbers: NDArray[np.uint16], out: Floats) -> None:
    """16 random bits to a number in −1..1; both flat."""
    gain, offset = np.float32(2.0 / 65536), np.float32(-1.0 + 1.0 / 65536)
    for i in range(out.size):
        out[i] = np.float32(numbers[i]) * gain + offset


def elastic_transform(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    fields = np.empty((source.height, source.width, 2), np.float32)
    words = rng.integers(0, 2**64, (fields.size + 3) // 4, dtype=np.uint64)
    to_fields(words.view(np.uint16), fields.reshape(-1))
    return bend(source, severity, fields)


def bend(source: CorruptionInput, severity: int, fields: Floats) -> Bytes:
    """Elastic transform by two fields of uniform numbers in −1..1, H×W×2: to the right, down."""
    alpha = ELASTIC[severity - 1]
    rows, columns = _bending_taps(source.height), _bending_taps(source.width)
    if (
        source.scale != 1.0
    ):  # the blur weakens the moves, less the smaller the image: keep the reference's part
        left = [float((taps**2).sum()) for taps in (rows, columns, _bending_taps(REFERENCE_SIDE))]
        alpha *= left[2] / (left[0] * left[1]) ** 0.5
    moves: Any = cv2.sepFilter2D(fields, cv2.CV_32F, columns, rows, borderType=cv2.BORDER_REFLECT)
    out = np.empty_like(source.image)
    for words, group in zip(source.four_bytes, source.by_fours()):
        displace(words, moves, np.float32(0.005 * source.height * alpha), out[:, :, group])
    return out


@lru_cache(maxsize=64)
def _bending_taps(side: int) -> Floats:
    sigma = 0.01 * side
    reach = int(3 * sigma + 0.5)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(kernel / kernel.sum(), dtype=np.float32)


def jpeg_compression(source: CorruptionInput, severity: int) -> Bytes:
    quality = JPEG[severity - 1]
    if source.is_rgb:
        return _jpeg(cv2.cvtColor(source.image, cv2.COLOR_RGB2BGR), quality, "RGB")
    planes = [_jpeg(source.image[:, :, c], quality, "GRAY") for c in range(source.channels)]
    return np.concatenate(planes, axis=2)


def _jpeg(image: Any, quality: int, space: str) -> Bytes:
    """Through JPEG with the accurate transform and chroma at half size: cv2 writes the same bytes as Pillow."""
    data = cv2.imencode(".jpg", np.ascontiguousarray(image), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return simplejpeg.decode_jpeg(data, space, fastdct=False, fastupsample=False)


def box_windows(side: int, small: int) -> NDArray[np.int64]:
    """First and last + 1 source index of each of `small` boxes over `side` pixels: centres inside the box count."""
    step = side / small
    centre = (np.arange(small) + 0.5) * step
    first = np.maximum((centre - 0.5 * step + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + 0.5 * step + 0.5).astype(np.int64), side)
    # a pixel on the border of two boxes: rounded as Pillow rounds, box by box (it may count in both or in none)
    first += (first + 0.5 - centre) * (1.0 / step) <= -0.5
    last -= (last - 1 + 0.5 - centre) * (1.0 / step) > 0.5
    return np.stack([first, np.maximum(last, first + 1)])


@lru_cache(maxsize=64)
def _mosaic(side: int, part: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    small = max(1, int(side * part))
    steps = np.full(side, small / side)
    steps[0] *= 0.5
    nearest = np.cumsum(steps).astype(np.int64)  # summed up, not multiplied: ties fall as in Pillow's nearest
    return box_windows(side, small), np.minimum(nearest, small - 1)


@njit(cache=True, nogil=True)
def mosaic(
    image: Bytes, rows: Any, row_of: Any, columns: Any, column_of: Any, channels: int, out: Bytes
) -> None:
    """Box means over the windows, rounded, each spread over the pixels that show it; image and out H×W·C."""
    sums = np.empty(image.shape[1], np.int32)
    line = np.empty(columns.shape[1] * channels, np.uint8)
    done = -1
    for y in range(image.shape[0]):
        i = row_of[y]
        if i == done:
            out[y] = out[y - 1]
            continue
        done = i
        sums[:] = 0
        for k in range(rows[0, i], rows[1, i]):
            row = image[k]
            for e in range(sums.size):
                sums[e] += row[e]
        tall = rows[1, i] - rows[0, i]
        for j in range(columns.shape[1]):
            first, last = columns[0, j], columns[1, j]
            inverse = np.float32(1.0) / np.float32((last - first) * tall)
            if channels == 3:
                red = green = blue = np.int32(0)
                for e in range(np.uint64(3 * first), np.uint64(3 * last), np.uint64(3)):
                    red += sums[e]
                    green += sums[e + np.uint64(1)]
                    blue += sums[e + np.uint64(2)]
                at = np.uint64(3 * j)
                line[at] = np.uint8(np.float32(red) * inverse + np.float32(0.5))
                line[at + np.uint64(1)] = np.uint8(np.float32(green) * inverse + np.float32(0.5))
                line[at + np.uint64(2)] = np.uint8(np.float32(blue) * inverse + np.float32(0.5))
                continue
            for c in range(channels):
                total = np.int32(0)
                for e in range(first * channels + c, last * channels + c, channels):
                    total += sums[e]
                line[j * channels + c] = np.uint8(np.float32(total) * inverse + np.float32(0.5))
        shown = out[y]
        for e in range(np.uint64(shown.size)):
            shown[e] = line[np.uint64(column_of[e])]


def pixelate(source: CorruptionInput, severity: int) -> Bytes:
    rows, row_of = _mosaic(source.height, PIXELATE[severity - 1])
    columns, column_of = _mosaic(source.width, PIXELATE[severity - 1])
    out = np.empty_like(source.image)
    entries = (column_of[:, None] * source.channels + np.arange(source.channels)).reshape(-1)
    flat = source.image.reshape(source.height, -1)
    mosaic(flat, rows, row_of, columns, entries, source.channels, out.reshape(source.height, -1))
    return out


@njit(cache=True, nogil=True, fastmath=True)
def stretch_saturation(pixels: Bytes, factor: Any, offset: Any, out: Bytes) -> None:
    """S ← clip(S·factor + offset) in HSV, hue and value kept: v_i = V (1 − S' (V − v_i) / (V − min)). N×3."""
    for p in range(pixels.shape[0]):
        r, g, b = np.float32(pixels[p, 0]), np.float32(pixels[p, 1]), np.float32(pixels[p, 2])
        top, low = max(r, g, b), min(r, g, b)
        if top == low:  # no hue: taken as red
            fall = top * (np.float32(1.0) - min(offset, np.float32(1.0))) + np.float32(1e-3)
            out[p, 0], out[p, 1], out[p, 2] = np.uint8(top), byte(fall), byte(fall)
            continue
        saturation = (top - low) / top
        wanted = min(max(saturation * factor + offset, np.float32(0.0)), np.float32(1.0))
        slope = top * wanted / (top - low)
        high = top + np.float32(1e-3)
        out[p, 0] = byte(high - slope * (top - r))
        out[p, 1] = byte(high - slope * (top - g))
        out[p, 2] = byte(high - slope * (top - b))


def saturate(source: CorruptionInput, severity: int) -> Bytes:
    """More or less colour; an image without three channels has none, and is returned unchanged."""
    if not source.is_rgb:
        return source.image.copy()
    factor, offset = SATURATE[severity - 1]
    out = np.empty_like(source.image)
    stretch_saturation(
        source.image.reshape(-1, 3), np.float32(factor), np.float32(offset), out.reshape(-1, 3)
    )
    return out
