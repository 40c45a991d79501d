"""Orders of tiles that differ as much as possible: the classes of a jigsaw puzzle."""

from __future__ import annotations

import io
import math
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from cuewise.compiled import cache_root
from cuewise.errors import UserError
from cuewise.files import write_bytes

Orders = NDArray[np.uint8]  # P×T: row p says which tile stands in each of T places
VERSION = 1  # of what the cache holds


def greedy_permutations(count: int, tiles: int = 9, seed: int = 0) -> Orders:
    """`count` of all orders of `tiles`: a random one, then always the one with the largest mean Hamming distance to those
    chosen (the first of equals in lexicographic order).

    The mean is kept as a running sum, so that a choice costs one pass over all orders.
    """
    most = math.factorial(tiles)
    if not 2 <= count <= most:
        raise UserError(f"{count} permutations of {tiles} tiles: give 2 to {most}")
    every = np.array(list(permutations(range(tiles))), np.uint8).T.copy()  # T×N: rows that are read in one go
    total = np.zeros(most, np.int32)  # sum of distances to the chosen
    differ = np.empty(most, bool)
    chosen = [int(np.random.default_rng(seed).integers(most))]
    while len(chosen) < count:
        last = every[:, chosen[-1]]
        for row, tile in zip(every, last):
            total += np.not_equal(row, tile, out=differ)
        total[chosen[-1]] = np.iinfo(np.int32).min // 2  # none is chosen twice
        chosen.append(int(total.argmax()))
    return every[:, chosen].T.copy()


def permutation_set(count: int, tiles: int = 9) -> Orders:
    """The same, from a file in the cache where it was made before."""
    file = cache_root() / "permutations" / f"{VERSION}-{tiles}-{count}.npy"
    try:
        found = np.load(file, allow_pickle=False)
        if found.shape == (count, tiles) and found.dtype == np.uint8:
            return np.asarray(found)
    except (OSError, ValueError, EOFError):  # none yet, or cut off: made again
        pass
    found = greedy_permutations(count, tiles)
    content = io.BytesIO()
    np.save(content, found)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, content.getvalue(), shared=True, sync=False)
    except OSError:  # a cache that cannot be written costs seconds, no more
        pass
    return found
