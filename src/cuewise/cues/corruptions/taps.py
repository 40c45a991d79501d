"""Blur kernels as lists of taps (row offset, column offset, weight): a disk of light, a streak of motion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.corruptions.filters import sum_of_shifts
from cuewise.cues.corruptions.source import Floats


@dataclass(frozen=True)
class Taps:
    """out[y, x] = Σ_t weights[t] · in[y + rows[t], x + columns[t]]."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    weights: Floats

    @property
    def radius(self) -> int:
        return int(max(np.abs(self.rows).max(), np.abs(self.columns).max()))


def gather(positions: dict[tuple[int, int], float]) -> Taps:
    """Taps from {(row, column): weight}, in row order, padded to a multiple of four with weight zero."""
    items = sorted((place, w) for place, w in positions.items() if abs(w) > 1e-9)
    items += [((0, 0), 0.0)] * (-len(items) % 4)
    places = np.array([place for place, _ in items], np.int64)
    return Taps(places[:, 0], places[:, 1], np.array([w for _, w in items], np.float32))


def apply_taps(padded: NDArray[np.generic], radius: int, taps: Taps, channels: int, width: int) -> Floats:
    """Filter an image padded by `radius`, rows flattened (H+2r)×(W+2r)·C; returns H×W·C."""
    out = np.empty((padded.shape[0] - 2 * radius, width * channels), np.float32)
    sum_of_shifts(padded, taps.rows + radius, (taps.columns + radius) * channels, taps.weights, out)
    return out


def disk(radius: float, alias_sigma: float) -> Floats:
    """The kernel of ImageNet-C's defocus: a disk on whole pixels, softened by a small Gaussian inside its frame."""
    reach, width = (8, 3) if radius <= 8 else (int(radius), 5)
    side = np.arange(-reach, reach + 1)
    kernel = (side[:, None] ** 2 + side**2 <= radius**2).astype(np.float32)
    kernel /= kernel.sum()
    return np.asarray(cv2.GaussianBlur(kernel, (width, width), alias_sigma), dtype=np.float32)


def soft_disk(radius: float, steps: int = 64) -> Floats:
    """A disk of any radius: points spread over it, each shared by its four nearest pixels. Variance ≥ r²/4."""
    reach = math.ceil(radius) + 1
    line = (np.arange(steps) + 0.5) / steps * 2 - 1
    x, y = (grid[line[:, None] ** 2 + line**2 <= 1] * radius for grid in np.meshgrid(line, line))
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    for dy in (0, 1):
        for dx in (0, 1):
            x0, y0 = np.floor(x), np.floor(y)
            share = (1 - np.abs(x - x0 - dx)) * (1 - np.abs(y - y0 - dy))
            np.add.at(kernel, ((y0 + dy).astype(int) + reach, (x0 + dx).astype(int) + reach), share)
    return np.asarray(kernel / kernel.sum(), dtype=np.float32)


@dataclass(frozen=True)
class Disk:
    """A disk kernel in cheap parts: taps on row sums, then a small Gaussian, plus what is left, taps on the image."""

    edges: Taps
    soften: Floats | None
    rest: Taps | None
    reach: int


@lru_cache(maxsize=64)
def defocus_disk(radius: int, alias_sigma: float, scale: float) -> Disk:
    """A row of a disk is a difference of two row sums: 2(2r + 1) taps instead of πr².

    ImageNet-C softens the disk inside a frame that cuts its border, so at radii 8 and 10 the kernel is not quite
    disk ∗ Gaussian: the difference is the rest.
    """
    if scale != 1.0:
        kernel = soft_disk(radius * scale)
        return Disk(_edges(kernel), None, None, kernel.shape[0] // 2)
    kernel = disk(radius, alias_sigma)
    width = 3 if radius <= 8 else 5
    hard = disk(radius, 1e-3)
    if np.abs(kernel - hard).max() < 1e-9:
        return Disk(_edges(hard), None, None, radius)
    soften = np.asarray(cv2.getGaussianKernel(width, alias_sigma, cv2.CV_32F), dtype=np.float32).ravel()
    reach = radius + width // 2
    frame = 2 * reach + 1
    whole = cv2.sepFilter2D(_centred(hard, frame), cv2.CV_32F, soften, soften, borderType=cv2.BORDER_CONSTANT)
    rest = _centred(kernel, frame) - whole
    places = {
        (int(i) - reach, int(j) - reach): float(rest[i, j]) for i, j in zip(*np.nonzero(np.abs(rest) > 2e-6))
    }
    return Disk(_edges(hard), soften, gather(places) if places else None, reach)


def _centred(kernel: Floats, side: int) -> Floats:
    """The kernel cut or filled with zeros to side×side about its centre."""
    cut = max(0, (kernel.shape[0] - side) // 2)
    kernel = kernel[cut : kernel.shape[0] - cut, cut : kernel.shape[0] - cut]
    return np.pad(kernel, (side - kernel.shape[0]) // 2)


def _edges(kernel: Floats) -> Taps:
    """Taps on row sums P[j] = Σ_{i<j}: Σ_j K[j] v[j] = Σ_j (K[j − 1] − K[j]) P[j]."""
    reach = kernel.shape[0] // 2
    steps = -np.diff(np.pad(kernel.astype(np.float64), ((0, 0), (1, 1))), axis=1)
    places = zip(*np.nonzero(np.abs(steps) > 1e-9))
    return gather({(int(i) - reach, int(j) - reach): float(steps[i, j]) for i, j in places})


def streak_taps(radius: int, sigma: float, degrees: float, scale: float) -> Taps:
    """Half a Gaussian of 2r + 1 points along a direction; on whole pixels, or shared by four when scaled."""
    if scale == 1.0:
        return Taps(*_streak(radius, sigma, math.radians(degrees)))
    down, right = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    length = 2 * radius * scale
    count = 2 * radius * max(1, math.ceil(scale)) + 1
    along = np.linspace(0.0, length, count)
    weights = np.exp(-0.5 * (along / (sigma * scale)) ** 2)
    weights /= weights.sum()
    positions: dict[tuple[int, int], float] = {}
    for t, w in zip(along.tolist(), weights.tolist()):
        y, x = t * down, t * right
        y0, x0 = math.floor(y), math.floor(x)
        b, a = y - y0, x - x0
        for (dy, down_share), (dx, right_share) in product(enumerate((1 - b, b)), enumerate((1 - a, a))):
            place = y0 + dy, x0 + dx
            positions[place] = positions.get(place, 0.0) + w * (down_share * right_share)
    return gather(positions)


@njit(cache=True, nogil=True)
def _streak(radius: int, sigma: float, angle: float) -> Any:
    """Rows, columns and weights on whole pixels: as `gather` sorts and fills up; equal places count together."""
    down, right = math.sin(angle), math.cos(angle)
    count = 2 * radius + 1
    rows, columns = np.zeros(count + 3, np.int64), np.zeros(count + 3, np.int64)
    weights = np.zeros(count + 3)
    total = 0.0
    for t in range(count):
        total += math.exp(-0.5 * (t / sigma) ** 2)
    n = 0
    for t in range(count):
        weight = math.exp(-0.5 * (t / sigma) ** 2) / total
        y, x = math.ceil(t * down - 0.5), math.ceil(t * right - 0.5)
        i = n
        while i > 0 and (rows[i - 1] > y or (rows[i - 1] == y and columns[i - 1] > x)):
            i -= 1
        if i > 0 and rows[i - 1] == y and columns[i - 1] == x:
            weights[i - 1] += weight
            continue
        for k in range(n, i, -1):
            rows[k], columns[k], weights[k] = rows[k - 1], columns[k - 1], weights[k - 1]
        rows[i], columns[i], weights[i] = y, x, weight
        n += 1
    kept = 0
    for k in range(n):
        if weights[k] > 1e-9:
            rows[kept], columns[kept], weights[kept] = rows[k], columns[k], weights[k]
            kept += 1
    whole = (kept + 3) // 4 * 4
    rows[kept:whole], columns[kept:whole], weights[kept:whole] = 0, 0, 0.0
    return rows[:whole], columns[:whole], weights[:whole].astype(np.float32)


@lru_cache(maxsize=64)
def gaussian_taps(sigma: float, scale: float, truncate: float = 4.0) -> Floats:
    """A 1-D Gaussian: sampled, or (scaled, where σ may be far below a pixel) the discrete one of exact variance."""
    s = sigma * scale
    reach = max(1, int(truncate * s + 0.5))
    if scale == 1.0:
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / s) ** 2)
    else:
        n = 4 * reach + 8
        ring = np.fft.irfft(np.exp(s * s * (np.cos(2 * np.pi * np.arange(n // 2 + 1) / n) - 1)), n)
        kernel = np.concatenate([ring[-reach:], ring[: reach + 1]])
    return np.asarray(kernel / kernel.sum(), dtype=np.float32)
