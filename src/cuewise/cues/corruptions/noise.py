"""Noise that changes each value independently: gaussian, shot, impulse and speckle.

A value v (0..255) becomes k with a known probability P(k | v), so all four are one thing: a draw from one of
256 laws over 256 outcomes. The laws are exact (closed forms), drawn with Walker's alias method: one 32-bit number,
one table look-up. A. J. Walker, "An efficient method for generating discrete random variables ..." (1977).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.cues.corruptions.source import Bytes, CorruptionInput

Laws = NDArray[np.float64]  # 256×256, row v: P(k | v)

GAUSSIAN = (0.08, 0.12, 0.18, 0.26, 0.38)  # σ, of a range of 0..1
SHOT = (60, 25, 12, 5, 3)  # photons at white
IMPULSE = (0.03, 0.06, 0.09, 0.17, 0.27)  # part of the values that turn black or white
SPECKLE = (0.15, 0.2, 0.35, 0.45, 0.6)  # σ, times the value


def gaussian_laws(sigma: float) -> Laws:
    """v + 255σ·N(0, 1), clipped, fraction dropped."""
    return _normal_laws(np.full(256, 255.0 * sigma))


def speckle_laws(sigma: float) -> Laws:
    """v + v·σ·N(0, 1), clipped, fraction dropped."""
    return _normal_laws(np.arange(256.0) * np.float64(sigma))


def _normal_laws(deviation: NDArray[np.float64]) -> Laws:
    laws = np.zeros((256, 256))
    for v, s in enumerate(deviation):
        if s == 0:
            laws[v, v] = 1.0
            continue
        below = [0.5 * math.erfc((v - k) / (s * math.sqrt(2.0))) for k in range(1, 256)]  # P(result < k)
        laws[v] = np.diff(np.array([0.0, *below, 1.0]))
    return laws


def shot_laws(photons: int) -> Laws:
    """Poisson(v/255 · photons) / photons, clipped, fraction dropped."""
    laws = np.zeros((256, 256))
    for v in range(256):
        rate = v / 255.0 * photons
        chance = math.exp(-rate)
        for k in range(photons):
            laws[v, int(k / photons * 255)] += chance
            chance *= rate / (k + 1)
        laws[v, 255] += max(0.0, 1.0 - laws[v].sum())
    return laws


def impulse_laws(amount: float) -> Laws:
    """Black or white with probability amount/2 each."""
    laws = np.eye(256) * (1.0 - amount)
    laws[:, 0] += amount / 2
    laws[:, 255] += amount / 2
    return laws


@njit(cache=True, nogil=True)
def alias_tables(laws: Laws) -> NDArray[np.uint32]:
    """Row v: 256 cells, each (threshold in 24 bits) << 8 | other outcome. Vose's construction."""
    table = np.empty((256, 256), np.uint32)
    stack = np.empty(256, np.int64)  # small cells from the bottom, large ones from the top
    for v in range(256):
        mass = laws[v] / laws[v].sum() * 256.0
        small, large = 0, 256
        for k in range(256):
            if mass[k] < 1.0:
                stack[small] = k
                small += 1
            else:
                large -= 1
                stack[large] = k
        while small > 0 and large < 256:
            s, g = stack[small - 1], stack[large]
            small -= 1
            table[v, s] = (np.uint32(mass[s] * 16777216.0) << np.uint32(8)) | np.uint32(g)
            mass[g] -= 1.0 - mass[s]
            if mass[g] < 1.0:
                large += 1
                stack[small] = g
                small += 1
        for k in range(small):
            table[v, stack[k]] = np.uint32(0xFFFFFF00) | np.uint32(stack[k])
        for k in range(large, 256):
            table[v, stack[k]] = np.uint32(0xFFFFFF00) | np.uint32(stack[k])
    return table


@njit(cache=True, nogil=True, inline="always")
def _outcome(value: Any, number: Any, flat: NDArray[np.uint32]) -> Any:
    """The cell's own outcome or its other one, without a branch (half of them would be mispredicted)."""
    cell = number & np.uint32(255)
    entry = flat[(np.uint32(value) << np.uint32(8)) | cell]
    own = np.uint32(0) - np.uint32((number >> np.uint32(8)) < (entry >> np.uint32(8)))
    return np.uint8((cell & own) | (entry & ~own))


@njit(cache=True, nogil=True)
def draw(values: Bytes, table: NDArray[np.uint32], seed: NDArray[np.uint64], out: Bytes) -> Any:
    """out[i] ~ law of values[i]; random numbers by xoshiro256++ (Blackman and Vigna) from four seed words.

    Returns what it read ahead, so that the reading is not optimised away.
    """
    s0, s1, s2, s3 = seed[0], seed[1], seed[2], seed[3]
    flat = table.ravel()
    # cells are read at random: they are in the cache once the table has been read in order
    read = np.uint32(0)
    for line in range(0, flat.size, 16):
        read |= flat[line]
    one, pairs = np.uint64(1), np.uint64(values.size // 2)
    for i in range(pairs + one):
        total = s0 + s3
        word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
        shifted = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
        k = i + i
        if i == pairs:  # the last of an odd number
            if values.size % 2:
                out[k] = _outcome(values[k], np.uint32(word), flat)
            break
        out[k] = _outcome(values[k], np.uint32(word), flat)
        out[k + one] = _outcome(values[k + one], np.uint32(word >> np.uint64(32)), flat)
    return read


@lru_cache(maxsize=32)
def _table(laws: Callable[[Any], Laws], strength: float) -> NDArray[np.uint32]:
    return alias_tables(laws(strength))


def _noise(
    source: CorruptionInput, laws: Callable[[Any], Laws], strength: float, rng: np.random.Generator
) -> Bytes:
    out = np.empty_like(source.image)
    seed = rng.integers(1, 2**64, 4, dtype=np.uint64)
    draw(source.image.reshape(-1), _table(laws, strength), seed, out.reshape(-1))
    return out


def gaussian_noise(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    return _noise(source, gaussian_laws, GAUSSIAN[severity - 1], rng)


def shot_noise(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    return _noise(source, shot_laws, SHOT[severity - 1], rng)


def impulse_noise(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    return _noise(source, impulse_laws, IMPULSE[severity - 1], rng)


def speckle_noise(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    return _noise(source, speckle_laws, SPECKLE[severity - 1], rng)
