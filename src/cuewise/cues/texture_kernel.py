"""Compiled search of the texture synthesiser: one thread, all random numbers from one 64-bit counter.

Layout. Pixels are packed r | g << 8 | b << 16. The examples lie in one flat field, black all around by the size of the
output, so that no neighbourhood can leave it: "outside reads black" needs no check. A flat position is the only
coordinate of a source pixel; its colour is read from the field of the current pyramid level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cuewise.cues.exp2_kernel import FAST, LOG2_E, exp2_product

U = np.uint64  # unsigned indices spare numba's check for negative ones
CHUNK = 4  # neighbours between two looks at the best cost so far
OUTSIDE = np.int32(2**31 - 1)


@njit(cache=True, nogil=True, inline="always")
def draw(state: Any) -> Any:
    """Next 64 random bits (splitmix64); state is a uint64 array of one element."""
    state[0] += U(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


@njit(cache=True, nogil=True, inline="always")
def random_source(state: Any, boxes: Any, stride: Any) -> Any:
    """A uniform source pixel as flat position: example first (16 bits), then row and column (24 bits each)."""
    bits = draw(state)
    e = ((bits >> U(48)) * U(boxes.shape[0])) >> U(16)
    y = (((bits >> U(24)) & U(0xFFFFFF)) * U(boxes[e, 1])) >> U(24)
    x = ((bits & U(0xFFFFFF)) * U(boxes[e, 2])) >> U(24)
    return U(boxes[e, 0]) + y * U(stride) + x


@njit(cache=True, nogil=True, inline="always")
def take(state: Any, pending: Any, left: Any) -> Any:
    """A uniform one of the first `left` pending pixels, taken out."""
    j = ((draw(state) >> U(32)) * U(left)) >> U(32)
    u = np.int64(pending[j])
    pending[j] = pending[left - 1]
    return u


@njit(cache=True, nogil=True)
def nearest(resolved: Any, at: int, jumps: Any, wanted: int, found: Any) -> None:
    """Indices into the distance-sorted offsets of the `wanted` nearest resolved pixels; there must be as many."""
    n = 0
    i = 0
    while n < wanted:
        found[n] = i  # overwritten unless pixel i counts: no branch to mispredict
        n += resolved[U(at + jumps[i])]
        i += 1


@njit(cache=True, nogil=True)
def all_resolved(order: Any, count: int, u: Any, width: int, ranks: Any, found: Any) -> None:
    """As `nearest` while all resolved pixels are wanted: their offsets' ranks, sorted by insertion."""
    centre_y, centre_x = ranks.shape[0] // 2, ranks.shape[1] // 2
    for n in range(count):
        v = order[n]
        rank = ranks[centre_y + v // width - u // width, centre_x + v % width - u % width]
        i = n
        while i > 0 and found[i - 1] > rank:
            found[i] = found[i - 1]
            i -= 1
        found[i] = rank


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def weigh(found: Any, n: int, distances: Any, weights: Any) -> None:
    """w_v = exp(−d_v / mean d), all 1 where the only neighbour is the pixel itself."""
    mean = np.float32(0)
    for i in range(n):
        mean += distances[U(found[i])]
    mean /= np.float32(n)
    k = np.float32(0) if mean == 0 else -LOG2_E / mean
    for i in range(n):
        weights[i] = exp2_product(k, distances[U(found[i])], np.float32(1))


@njit(cache=True, nogil=True)
def best_of(
    field: Any,
    candidates: Any,
    first: int,
    last: int,
    near: Any,
    hops: Any,
    weights: Any,
    n: int,
    costs: Any,
    best: Any,
) -> Any:
    """The cheapest of candidates[first:last] if cheaper than `best` = (cost, position); the first wins ties.

    near[hops] are the neighbours' offsets in the field, near[2:5] the places in `costs` of a zero difference to their
    channels. A candidate is left as soon as its partial sum reaches the best: terms are never negative.
    """
    cost_best, position = best
    for i in range(first, last):
        c = candidates[i]
        cost = np.float32(0)
        j = 0
        while j < n and cost < cost_best:
            for _ in range(CHUNK):
                p = U(field[c + near[hops, j]])
                cost += weights[j] * (
                    costs[near[2, j] + (p & U(255))]
                    + costs[near[3, j] + ((p >> U(8)) & U(255))]
                    + costs[near[4, j] + (p >> U(16))]
                )
                j += 1
        if cost < cost_best:
            cost_best, position = cost, c
    return cost_best, position


@njit(cache=True, nogil=True)
def describe(
    found: Any,
    n: int,
    u: Any,
    width: int,
    offsets: Any,
    stride: int,
    field: Any,
    source: Any,
    near: Any,
    weights: Any,
) -> None:
    """Fill `near` (offsets in the field forwards and backwards, then table places) for the found neighbours."""
    for i in range(n):
        dy, dx = offsets[found[i], 0], offsets[found[i], 1]
        p = U(field[U(source[u + dy * width + dx])])
        hop = dy * stride + dx
        near[0, i], near[1, i] = U(hop), U(-hop)
        near[2, i], near[3, i], near[4, i] = (
            U(255) - (p & U(255)),
            U(255) - ((p >> U(8)) & U(255)),
            U(255) - (p >> U(16)),
        )
    for i in range(n, (n + CHUNK - 1) // CHUNK * CHUNK):  # whole chunks: the rest weighs nothing
        weights[i] = 0
        near[:, i] = 0


@njit(cache=True, nogil=True)
def gather(
    found: Any,
    n: int,
    u: Any,
    width: int,
    offsets: Any,
    stride: int,
    source: Any,
    seen: Any,
    mark: Any,
    candidates: Any,
) -> Any:
    """The neighbours' own sources, shifted to u, each once and only inside their example; returns how many."""
    count = 0
    for i in range(n):
        dy, dx = offsets[found[i], 0], offsets[found[i], 1]
        c = U(source[u + dy * width + dx] - (dy * stride + dx))
        if seen[c] < mark:
            seen[c] = mark
            candidates[count] = c
            count += 1
    return count


@njit(cache=True, nogil=True)
def gather_random(
    state: Any, wanted: int, boxes: Any, stride: int, seen: Any, mark: Any, candidates: Any, count: int
) -> Any:
    """`wanted` uniform source pixels after the first `count` candidates, each once; returns the new count."""
    for _ in range(wanted):
        c = random_source(state, boxes, stride)
        if seen[c] < mark:
            seen[c] = mark
            candidates[count] = c
            count += 1
    return count


@njit(cache=True, nogil=True)
def open_boxes(boxes: Any, stride: int, seen: Any) -> None:
    """Source pixels become visitable; what is outside the examples stays marked as seen for ever."""
    for e in range(boxes.shape[0]):
        for y in range(boxes[e, 1]):
            begin = boxes[e, 0] + y * stride
            seen[begin : begin + boxes[e, 2]] = 0


@njit(cache=True, nogil=True, forceinline=True)
def choose(
    field: Any,
    layout: Any,
    u: Any,
    n: int,
    found: Any,
    source: Any,
    seen: Any,
    mark: Any,
    search: Any,
    tables: Any,
    scratch: Any,
    state: Any,
) -> Any:
    """(cost, position) of the best source for pixel u given its n found neighbours; cost is ∞ if there is none."""
    boxes, stride, width = layout
    _, m, mirror = search
    offsets, distances, costs = tables
    weights, near, candidates = scratch
    weigh(found, n, distances, weights)
    describe(found, n, u, width, offsets, stride, field, source, near, weights)
    last = gather(found, n, u, width, offsets, stride, source, seen, mark, candidates)
    best = best_of(field, candidates, 0, last, near, 0, weights, n, costs, (np.float32(np.inf), U(0)))
    # Mirrored, a random candidate compares other pixels than a neighbour's at the same place: both count.
    again = np.int32(1 if mirror else 0)
    more = gather_random(state, m, boxes, stride, seen, mark + again, candidates, last)
    return best_of(field, candidates, last, more, near, again, weights, n, costs, best)


@njit(cache=True, nogil=True)
def synthesize_sources(
    pyramid: Any,
    boxes: Any,
    stride: int,
    sorted_offsets: Any,
    size: Any,
    quotas: Any,
    search: Any,
    costs: Any,
    seed: Any,
) -> Any:
    """For each output pixel the flat position of its source pixel, int32 [H·W].

    pyramid: uint32 [levels, field]; boxes: (position, height, width) of each example; sorted_offsets: (dy, dx) by
    distance, their jumps in the bitmap, their normalised squared lengths, their ranks; search: (k, m, mirror_random).
    """
    offsets, jumps, distances, ranks = sorted_offsets
    (height, width), k, m = size, search[0], search[1]
    total, row = height * width, 2 * width
    state = np.array([seed], np.uint64)
    source, order, pending = (
        np.zeros(total, np.int32),
        np.zeros(total, np.int32),
        np.arange(total).astype(np.int32),
    )
    resolved = np.zeros((3 * height) * row + width, np.uint8)
    seen = np.full(pyramid.shape[1], OUTSIDE, np.int32)
    open_boxes(boxes, stride, seen)
    layout, tables = (boxes, stride, width), (offsets, distances, costs)
    found, weights = np.zeros(k + 1, np.int64), np.zeros(k + CHUNK, np.float32)
    scratch = (weights, np.zeros((5, k + CHUNK), np.uint64), np.zeros(k + m, np.uint64))
    count, mark = 0, np.int32(0)
    for stage in range(len(quotas)):
        field = pyramid[min(stage, pyramid.shape[0] - 1)]
        before = count
        for i in range(quotas[stage]):
            again = i < before
            if again:
                u = np.int64(order[i])
            else:
                u = take(state, pending, total - count)
            at = (height + u // width) * row + width + u % width
            if count <= k:
                all_resolved(order, count, u, width, ranks, found)
            else:
                nearest(resolved, at, jumps, k, found)
            n, cost, position = min(k, count), np.float32(np.inf), U(0)
            if n > 0:
                mark += np.int32(2)
                cost, position = choose(
                    field, layout, u, n, found, source, seen, mark, search, tables, scratch, state
                )
            if cost < np.inf:
                source[u] = position
            elif not again:  # the first pixel, or no candidate inside and no random ones
                source[u] = random_source(state, boxes, stride)
            if not again:
                resolved[at] = 1
                order[count] = u
                count += 1
    return source
