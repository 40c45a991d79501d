"""Random numbers as a pure function of (key, counter): the same on every machine, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.kernels import kernel, part

# splitmix64 (Steele, Lea, Flood 2014): the increment and the two multipliers of its finaliser.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@kernel
def mix(key: Any, counter: Any) -> Any:
    """64 random bits of (key, counter), both uint64."""
    x = key + (counter + np.uint64(1)) * _GAMMA
    x = (x ^ (x >> _S30)) * _FIRST
    x = (x ^ (x >> _S27)) * _SECOND
    return x ^ (x >> _S31)


# with its types, else compiled once for each literal it is called with
@njit("int64(uint64, int64, int64, int64)", cache=True, nogil=True)
def draw(key: Any, counter: int, low: int, high: int) -> int:
    """A uniform integer in [low, high], the `counter`-th number of `key`."""
    bits = np.int64(mix(key, np.uint64(counter)) >> _S32)
    return int(low + ((bits * np.int64(high - low + 1)) >> 32))


def mix_arrays(key: NDArray[np.uint64], counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix`, element by element."""
    plain = getattr(mix, "py_func", mix)  # mix itself when numba is switched off
    return plain(np.atleast_1d(key), np.atleast_1d(counter))


def draw_array(keys: NDArray[np.uint64], counter: int, low: int, high: int) -> NDArray[np.int64]:
    """`draw` for every key; high − low must be below 2³¹."""
    bits = (mix_arrays(keys, np.array([counter], np.uint64)) >> _S32).astype(np.int64)
    return low + ((bits * (high - low + 1)) >> 32)


def stream_keys(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    """One key for each image 0..count−1 of a stream; image i's key does not depend on `count`."""
    root = mix_arrays(np.array([seed], np.uint64), np.array([stream], np.uint64))
    return mix_arrays(root, np.arange(count, dtype=np.uint64))


@part
def lattice(x: int, y: int, key: int) -> int:
    """32 random bits of an integer grid point, for noise and per-tile variation (int64 in and out)."""
    h = (x * 0x27D4EB2F + y * 0x165667B1 + key) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    h = ((h ^ (h >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    return h ^ (h >> 15)
