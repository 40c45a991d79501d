"""Weather: snow, frost, fog and brightness."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.corruptions.blur import zoom_axis, zoom_sides
from cuewise.cues.corruptions.filters import byte
from cuewise.cues.corruptions.frost_patterns import cut, frost_sheet
from cuewise.cues.corruptions.source import Bytes, CorruptionInput, Floats
from cuewise.cues.corruptions.taps import apply_taps, streak_taps

SNOW = (  # mean, σ, flake size, threshold, radius, σ of the motion, weight of the image
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
FROST = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))  # weight of the image, of the frost
FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))  # density, decay of the roughness
BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)
LUMA = (0.2989, 0.5870, 0.1140)
U = np.uint64  # unsigned indices spare numba's check for negative ones


def snow(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    mean, sigma, flake = SNOW[severity - 1][:3]
    flake = max(1.0, flake * source.scale)
    shape = tuple(int(np.ceil(side / flake)) for side in (source.height, source.width))
    field = rng.standard_normal(shape, dtype=np.float32) * np.float32(sigma) + np.float32(mean)
    return snow_of(source, severity, field, rng.uniform(-135.0, -45.0))


def snow_of(source: CorruptionInput, severity: int, field: Floats, degrees: float) -> Bytes:
    """Snow from the small field that is zoomed to flakes and smeared in a direction."""
    _, _, flake, threshold, radius, sigma, mix = SNOW[severity - 1]
    flake = max(1.0, flake * source.scale)
    (crop, tall), (cut_width, wide) = (zoom_sides(n, flake) for n in (source.height, source.width))
    (y, b), (x, a) = zoom_axis(crop, crop, tall, tall), zoom_axis(cut_width, cut_width, wide, wide)
    layer = np.empty((tall, wide), np.float32)
    zoom_field(field, y, b, x, a, np.float32(threshold), layer)
    taps = streak_taps(radius, sigma, degrees, source.scale)
    r = taps.radius
    padded = cv2.copyMakeBorder(layer, r, r, r, r, cv2.BORDER_REPLICATE)
    smeared = apply_taps(padded, r, taps, 1, wide)
    out = np.empty_like(source.image)
    lay_snow(source.image, smeared, np.float32(mix), out)
    return out


@njit(cache=True, nogil=True)
def zoom_field(field: Floats, y: Any, b: Floats, x: Any, a: Floats, threshold: Any, out: Floats) -> None:
    """Bilinear zoom of a small field; values below the threshold become 0."""
    last_row, last_column = field.shape[0] - 1, field.shape[1] - 1
    line = np.empty(field.shape[1], np.float32)
    for i in range(out.shape[0]):
        upper, lower = field[y[i]], field[min(y[i] + 1, last_row)]
        for k in range(line.size):
            line[k] = upper[k] + b[i] * (lower[k] - upper[k])
        shown = out[i]
        for j in range(U(out.shape[1])):
            left, right = line[U(x[j])], line[U(min(x[j] + 1, last_column))]
            value = left + a[j] * (right - left)
            shown[j] = (
                np.float32(0.0) if value < threshold else min(max(value, np.float32(0.0)), np.float32(1.0))
            )


@njit(cache=True, nogil=True, fastmath=True)
def lay_snow(image: Bytes, layer: Floats, mix: Any, out: Bytes) -> None:
    """Whiten the image, then add the layer and the layer turned by 180°."""
    height, width, channels = image.shape
    half, white, rest = np.float32(127.5), np.float32(255.0), np.float32(1.0) - mix
    fall = np.empty(width, np.float32)
    for y in range(height):
        here, turned = layer[y], layer[height - 1 - y]
        last = U(width - 1)
        for x in range(U(width)):
            both = np.floor(here[x] * white + np.float32(0.5)) + np.floor(
                turned[last - x] * white + np.float32(0.5)
            )
            fall[x] = both + np.float32(1e-3)
        values, mixed = image[y].reshape(-1), out[y].reshape(-1)
        if channels != 3:
            for x in range(U(width)):
                for c in range(U(channels)):
                    value = np.float32(values[x * U(channels) + c])
                    pale = max(value, np.float32(1.5) * value + half)
                    mixed[x * U(channels) + c] = byte(mix * value + rest * pale + fall[x])
            continue
        for x in range(U(width)):
            k = x * U(3)
            r, g, b = np.float32(values[k]), np.float32(values[k + U(1)]), np.float32(values[k + U(2)])
            # 1.5 luma + ½
            pale = np.float32(0.4485) * r + np.float32(0.8805) * g + np.float32(0.171) * b + half
            mixed[k] = byte(mix * r + rest * max(r, pale) + fall[x])
            mixed[k + U(1)] = byte(mix * g + rest * max(g, pale) + fall[x])
            mixed[k + U(2)] = byte(mix * b + rest * max(b, pale) + fall[x])


def frost(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    sheet = frost_sheet(source.frost_images, source.height, source.width, source.scale, rng)
    return frost_of(source, severity, cut(sheet, source.height, source.width, rng))


def frost_of(source: CorruptionInput, severity: int, frozen: Bytes) -> Bytes:
    """Frost from a cut-out H×W×3 of a photograph."""
    keep, ice = FROST[severity - 1]
    if not source.is_rgb:
        luma = np.asarray(frozen @ np.array(LUMA, np.float32), dtype=np.float32)
        values = keep * source.image + (ice * luma)[:, :, None]
        return np.clip(values, 0, 255).astype(np.uint8)
    out = cv2.addWeighted(source.image, keep, frozen, ice, -0.499)  # it rounds; the fraction is to be dropped
    return np.asarray(out, dtype=np.uint8)


def fog(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    side = 1 << (max(source.height, source.width, source.channels) - 1).bit_length()
    words = rng.integers(0, 2**64, (side * side + 3) // 4, dtype=np.uint64)
    return fog_of(source, severity, words.view(np.uint16), 2.0 / 65536, -1.0 + 1.0 / 65536)


def fog_of(
    source: CorruptionInput, severity: int, numbers: NDArray[Any], gain: float, offset: float
) -> Bytes:
    """Fog from side² − 1 numbers; number · gain + offset is uniform in −1..1."""
    density, decay = FOG[severity - 1]
    side = 1 << (max(source.height, source.width, source.channels) - 1).bit_length()
    height_map = np.zeros((side, side), np.float32)
    low, high = plasma(height_map, numbers, np.float32(gain), np.float32(offset), decay)
    peak = source.peak
    out = np.empty_like(source.image)
    thin = peak / (peak + density)
    thick = 255.0 * density / max(high - low, 1e-12) * thin
    lay_fog(source.image, height_map, np.float32(thin), np.float32(thick), np.float32(low), out)
    return out


@njit(cache=True, nogil=True)
def plasma(m: Floats, numbers: Any, gain: Any, offset: Any, decay: float) -> Any:
    """Diamond-square on a torus, in place; returns the lowest and highest value.

    A new point is the sum of its four neighbours / 4 plus w²·U(−1, 1); w starts at 100 and falls by `decay` a level.
    The numbers are used in the order squares, points right of corners, points below corners, level by level.
    """
    side = m.shape[0]
    mask = side - 1
    step, wibble, k = side, 100.0, 0
    low, high = m[0, 0], m[0, 0]
    quarter = np.float32(0.25)
    while step >= 2:
        half = step // 2
        amount = np.float32(wibble * wibble) * gain
        shift = np.float32(wibble * wibble) * offset
        for kind in range(3):
            down = 0 if kind == 1 else half
            right = 0 if kind == 2 else half
            for y in range(down, side, step):
                for x in range(right, side, step):
                    if kind == 0:
                        total = m[y - half, x - half] + m[(y + half) & mask, x - half]
                        total += m[y - half, (x + half) & mask] + m[(y + half) & mask, (x + half) & mask]
                    else:
                        total = m[(y - half) & mask, x] + m[(y + half) & mask, x]
                        total += m[y, (x - half) & mask] + m[y, (x + half) & mask]
                    value = total * quarter + np.float32(numbers[k]) * amount + shift
                    k += 1
                    m[y, x] = value
                    low, high = min(low, value), max(high, value)
        step = half
        wibble /= decay
    return low, high


@njit(cache=True, nogil=True, fastmath=True)
def lay_fog(image: Bytes, height_map: Floats, thin: Any, thick: Any, low: Any, out: Bytes) -> None:
    """out = image · thin + (map − low) · thick."""
    height, width, channels = image.shape
    for y in range(height):
        row, values, laid = height_map[y], image[y].reshape(-1), out[y].reshape(-1)
        for x in range(U(width)):
            veil = (row[x] - low) * thick + np.float32(1e-3)
            k = x * U(channels)
            if channels == 3:
                laid[k] = byte(np.float32(values[k]) * thin + veil)
                laid[k + U(1)] = byte(np.float32(values[k + U(1)]) * thin + veil)
                laid[k + U(2)] = byte(np.float32(values[k + U(2)]) * thin + veil)
            else:
                for c in range(U(channels)):
                    laid[k + c] = byte(np.float32(values[k + c]) * thin + veil)


def brightness(source: CorruptionInput, severity: int) -> Bytes:
    """V + c in HSV keeps hue and saturation, so it multiplies the pixel by min(V + c, 1) / V."""
    more = 255.0 * BRIGHTNESS[severity - 1]
    out = np.empty_like(source.image)
    if not source.is_rgb:
        lut = np.minimum(np.arange(256) + more + 1e-6, 255).astype(np.uint8)
        return np.asarray(lut[source.image])
    value = np.arange(1, 256)
    factor = np.concatenate([[0.0], np.minimum(value + more, 255.0) / value]).astype(np.float32)
    brighten(source.image.reshape(-1, 3), factor, np.uint8(more + 1e-6), out.reshape(-1, 3))
    return out


@njit(cache=True, nogil=True)
def brighten(pixels: Bytes, factor: Floats, black: Any, out: Bytes) -> None:
    """N×3 times the factor of its largest channel; black becomes grey."""
    values, lit = pixels.reshape(-1), out.reshape(-1)
    for p in range(U(pixels.shape[0])):
        k = U(3) * p
        r, g, b = values[k], values[k + U(1)], values[k + U(2)]
        top = max(r, g, b)
        f = factor[U(top)]
        rest = black if top == 0 else np.uint8(0)
        lit[k] = np.uint8(np.float32(r) * f + np.float32(1e-3)) + rest
        lit[k + U(1)] = np.uint8(np.float32(g) * f + np.float32(1e-3)) + rest
        lit[k + U(2)] = np.uint8(np.float32(b) * f + np.float32(1e-3)) + rest
