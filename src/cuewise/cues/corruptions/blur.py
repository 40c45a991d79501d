"""Blurs: defocus, frosted glass, motion, zoom and Gaussian."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.corruptions.filters import floats_to_bytes
from cuewise.cues.corruptions.lanes import sums_of_zooms
from cuewise.cues.corruptions.source import Bytes, CorruptionInput, Floats
from cuewise.cues.corruptions.taps import apply_taps, defocus_disk, gaussian_taps, streak_taps

GAUSSIAN_BLUR = (1, 2, 3, 4, 6)  # σ
DEFOCUS = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))  # radius of the disk, σ that softens its border
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))  # σ, farthest move, rounds
MOTION = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))  # radius, σ
ZOOM = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))  # end, step of the zooms from 1
U = np.uint64  # unsigned indices spare numba's check for negative ones


def as_bytes(values: Floats, shape: tuple[int, ...]) -> Bytes:
    out = np.empty(shape, np.uint8)
    floats_to_bytes(values.reshape(-1), out.reshape(-1))
    return out


def gaussian(image: Bytes, sigma: float, scale: float) -> Bytes:
    """Separable Gaussian with the border pixels continued; fraction dropped."""
    taps = gaussian_taps(sigma, scale)
    blurred = cv2.sepFilter2D(image, cv2.CV_32F, taps, taps, borderType=cv2.BORDER_REPLICATE)
    return as_bytes(np.asarray(blurred, dtype=np.float32), image.shape)


def gaussian_blur(source: CorruptionInput, severity: int) -> Bytes:
    return gaussian(source.image, GAUSSIAN_BLUR[severity - 1], source.scale)


def defocus_blur(source: CorruptionInput, severity: int) -> Bytes:
    disk = defocus_disk(*DEFOCUS[severity - 1], source.scale)
    # one table of sums for all severities
    reach = max(defocus_disk(*row, source.scale).reach for row in DEFOCUS)
    channels, width = source.channels, source.width
    values: Any
    if disk.soften is None:
        values = apply_taps(source.prefixed(reach), reach, disk.edges, channels, width)
    else:
        edge = len(disk.soften) // 2
        hard = apply_taps(source.prefixed(reach), reach - edge, disk.edges, channels, width + 2 * edge)
        hard = hard.reshape(-1, width + 2 * edge, channels)
        soft = cv2.sepFilter2D(hard, cv2.CV_32F, disk.soften, disk.soften)
        values = soft.reshape(hard.shape)[edge:-edge, edge:-edge].reshape(source.height, -1)
    if disk.rest is not None:
        padded = source.padded(reach, cv2.BORDER_REFLECT_101)
        values += apply_taps(padded.reshape(len(padded), -1), reach, disk.rest, channels, width)
    return as_bytes(np.ascontiguousarray(values), source.image.shape)


def motion_blur(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    return blur_along(source, severity, rng.uniform(-45.0, 45.0))


def blur_along(source: CorruptionInput, severity: int, degrees: float) -> Bytes:
    """Motion blur in a given direction."""
    radius, sigma = MOTION[severity - 1]
    taps = streak_taps(radius, sigma, degrees, source.scale)
    padded = source.padded(taps.radius, cv2.BORDER_REPLICATE)
    values = apply_taps(padded.reshape(len(padded), -1), taps.radius, taps, source.channels, source.width)
    return as_bytes(values, source.image.shape)


def zooms(severity: int) -> NDArray[np.float64]:
    end, step = ZOOM[severity - 1]
    return np.arange(1, end, step)


def zoom_sides(length: int, factor: float) -> tuple[int, int]:
    """The side of the central crop, and of its zoomed copy (which may be a little longer than `length`)."""
    crop = int(np.ceil(length / factor))
    return crop, round(crop * factor)


def zoom_axis(length: int, crop: int, full: int, count: int) -> tuple[NDArray[np.int64], Floats]:
    """Where pixels 0 .. count of a centred zoom read: index and fraction."""
    place = np.arange(count) * ((crop - 1) / max(full - 1, 1))
    index = np.minimum(place.astype(np.int64), max(crop - 2, 0))
    return index + (length - crop) // 2, (place - index).astype(np.float32)


@lru_cache(maxsize=32)
def _zoom_plan(height: int, width: int, severities: tuple[int, ...]) -> tuple[NDArray[Any], ...]:
    """The zooms that these severities need, each once: rows, parts, columns, parts, members (Z×S)."""
    members: dict[tuple[tuple[int, int], tuple[int, int]], list[int]] = {}
    for s, severity in enumerate(severities):
        for z in zooms(severity):
            sides = zoom_sides(height, float(z)), zoom_sides(width, float(z))
            members.setdefault(sides, [0] * len(severities))[s] += 1
    axes = [[zoom_axis(n, *side, n) for n, side in zip((height, width), sides)] for sides in members]
    rows, columns = (np.stack([axis[k][0] for axis in axes]) for k in (0, 1))
    parts = [np.rint(np.stack([axis[k][1] for axis in axes]) * 256).astype(np.int64) for k in (0, 1)]
    both = np.stack([256 - parts[1], parts[1]], -1).repeat(4, -1).astype(np.uint16)
    return rows, parts[0], columns, both, np.array(list(members.values()), np.uint64)


def zoom_blur(source: CorruptionInput, severity: int) -> Bytes:
    if severity not in source.zoomed:  # severities share most of their zooms: all that will be asked at once
        rows, row_parts, columns, column_parts, members = _zoom_plan(
            source.height, source.width, source.severities
        )
        out = np.empty((len(source.severities), *source.image.shape), np.uint8)
        for words, group in zip(source.four_lanes, source.by_fours()):
            sums_of_zooms(words, rows, row_parts, columns, column_parts, members, out[..., group])
        source.zoomed.update(zip(source.severities, out))
    return source.zoomed.pop(severity)


@njit(cache=True, nogil=True)
def shuffle(origin: NDArray[np.uint32], moves: Any, reach: int, width: int, height: int) -> None:
    """From the bottom right up, each pixel takes its neighbour's place in `origin` (flat, H·W).

    moves: flat, one number in 0 .. (2·reach)² per pixel; the move is (m // 2·reach − reach, m % 2·reach − reach).
    The neighbour keeps its own value: ImageNet-C's published swap copies, because it exchanges views.
    """
    side = 2 * reach
    hops = np.empty(side * side, np.int64)
    for m in range(side * side):
        hops[m] = (m // side - reach) * width + m % side - reach
    k = U(0)
    for y in range(height - reach, reach, -1):
        last = y * width + width - reach
        for i in range(max(width - 2 * reach, 0)):
            origin[U(last - i)] = origin[U(last - i + hops[U(moves[k])])]
            k += U(1)


@njit(cache=True, nogil=True)
def to_moves(words: NDArray[np.uint16], count: int) -> NDArray[np.uint8]:
    """16 random bits to 0 .. count (count ≤ 64: no number is more than 0.1 % too likely)."""
    moves = np.empty(words.size, np.uint8)
    for i in range(words.size):
        moves[i] = (np.uint32(words[i]) * np.uint32(count)) >> np.uint32(16)
    return moves


@njit(cache=True, nogil=True)
def take_pixels(image: Bytes, origin: NDArray[np.uint32], out: Bytes) -> None:
    """out[p] = image[origin[p]] for images flattened to (H·W)×C."""
    if image.shape[1] == 3:  # a loop of known length is three times faster
        for p in range(U(origin.size)):
            q = U(origin[p])
            out[p, 0], out[p, 1], out[p, 2] = image[q, 0], image[q, 1], image[q, 2]
        return
    for p in range(origin.size):
        for c in range(image.shape[1]):
            out[p, c] = image[origin[p], c]


def glass_blur(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    _, published, rounds = GLASS[severity - 1]
    reach = max(1, round(published * source.scale))
    steps = max(source.height - 2 * reach, 0) * max(source.width - 2 * reach, 0)
    words = rng.integers(0, 2**64, (rounds * steps + 3) // 4, dtype=np.uint64).view(np.uint16)
    moves = to_moves(words, (2 * reach) ** 2)
    often = published * source.scale
    if often < 1.0:  # a move of less than a pixel: a pixel, less often
        moves[rng.random(moves.size) > often] = 2 * reach * reach + reach
    return blur_through_glass(source, severity, moves[: rounds * steps].reshape(rounds, steps), reach)


def blur_through_glass(source: CorruptionInput, severity: int, moves: NDArray[Any], reach: int) -> Bytes:
    """Blur, shuffle by the given moves (rounds×steps), blur."""
    sigma = GLASS[severity - 1][0]
    image = gaussian(source.image, sigma, source.scale)
    origin = np.arange(source.height * source.width, dtype=np.uint32)
    for once in moves:
        shuffle(origin, once, reach, source.width, source.height)
    mixed = np.empty_like(image)
    take_pixels(image.reshape(-1, source.channels), origin, mixed.reshape(-1, source.channels))
    return gaussian(mixed, sigma, source.scale)
