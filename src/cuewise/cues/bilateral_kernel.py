"""Compiled bilateral filter: every weight is computed once and counts for both pixels of its pair.

A pixel meets the half of its window that lies after it, tap by tap along a row. The sums of the later pixels wait in a few
rows that fit the first cache.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import FAST, MAGIC, intrinsic
from cuewise.cues.vector_ir import FLOATS, LANES, Vectors, floats

Floats = NDArray[np.float32]
# 2^f for f ∈ [−½, ½] to 3e-6, the highest power first: enough for a mean of grey levels
POWERS = (
    9.570101834643878e-3,
    5.591786031338328e-2,
    2.402474482975329e-1,
    6.931218147378084e-1,
    9.999992614451435e-1,
)
FARTHEST = 126.0**0.5  # of a scaled difference: 2^−126 is no weight any more
LINE = 16  # numbers in a line of the cache
U = np.uint64


def pair_weights(v: Vectors, distance: Any, powers: list[Any]) -> Any:
    """powers(2^(−distance²)): the polynomial of the fraction times the whole part as an exponent."""
    b = v.builder
    near = v.least(distance, floats(FARTHEST))
    minus = b.fneg(near)
    z = v.fma(minus, near, floats(float(MAGIC)))
    f = v.fma(minus, near, b.fsub(floats(float(MAGIC)), z))
    return b.fmul(v.polynomial(powers, f), b.bitcast(v.shifted(z, 23), FLOATS))


def _meeting(channels: int) -> Any:
    """One tap along a row of `blocks` vectors.

    Addresses: here and there, the row's pixels and their partners; own and other, their sums; powers [5], the polynomial
    times the spatial weight. Channels lie `plane` bytes apart, sums `step` bytes.
    """

    def meet(
        typing: Any,
        here: Any,
        there: Any,
        own: Any,
        other: Any,
        powers: Any,
        plane: Any,
        step: Any,
        blocks: Any,
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            here, there, own, other, powers, plane, step, blocks = args
            v, word = Vectors(builder), here.type
            scaled = [v.number(builder.add(powers, word(4 * i))) for i in range(len(POWERS))]
            with cgutils.for_range(builder, blocks, intp=word) as loop:
                x = builder.mul(loop.index, word(4 * LANES))

                def at(base: Any, row: int, apart: Any) -> Any:
                    return builder.add(builder.add(base, x), builder.mul(apart, word(row)))

                one, two = ([v.load(at(p, c, plane)) for c in range(channels)] for p in (here, there))
                gaps = [v.abs(builder.fsub(a, b)) for a, b in zip(one, two)]
                weight = pair_weights(v, reduce(builder.fadd, gaps), scaled)
                for sums, values in ((own, two), (other, one)):
                    for c, value in enumerate(values):
                        place = at(sums, c, step)
                        v.store(v.fma(weight, value, v.load(place)), place)
                    place = at(sums, channels, step)
                    v.store(builder.fadd(weight, v.load(place)), place)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 8), code

    return cast(Any, intrinsic(meet))


meet_colour, meet_grey = _meeting(3), _meeting(1)


@njit(cache=True, nogil=True)
def aligned(rows: int, length: int) -> Floats:
    """Zeros that begin at a cache line."""
    numbers = np.zeros(rows * length + LINE, np.float32)
    first = (-np.int64(numbers.ctypes.data) // 4) % LINE
    return numbers[first : first + rows * length].reshape(rows, length)


@njit(cache=True, nogil=True)
def load(padded: Any, scale: Any, planes: Floats, front: int, stride: int) -> None:
    """Rows of pixels [rows, columns, C], scaled, to one plane per channel, whose rows are `stride` apart."""
    rows, columns, channels = padded.shape
    for i in range(rows):
        pixels, at = padded[i].reshape(-1), U(front + i * stride)
        if channels == 3:  # a separate loop: it vectorises only with a known step
            red, green, blue = planes[0], planes[1], planes[2]
            for j in range(U(columns)):
                red[at + j] = np.float32(pixels[U(3) * j]) * scale
                green[at + j] = np.float32(pixels[U(3) * j + U(1)]) * scale
                blue[at + j] = np.float32(pixels[U(3) * j + U(2)]) * scale
        else:
            grey = planes[0]
            for j in range(U(columns)):
                grey[at + j] = np.float32(pixels[j]) * scale


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def invert(own: Floats, partners: Floats, n: Any) -> None:
    """own ← 1 / all weights of a row, its own pixels' included; the partners' sums become 0."""
    for j in range(n):
        own[j] = np.float32(1.0) / (own[j] + partners[j] + np.float32(1.0))
        partners[j] = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath=FAST)
def mean(
    own: Floats, partners: Floats, plane: Floats, at: Any, norm: Floats, n: Any, back: Any, round_by: Any
) -> None:
    """own ← the weighted mean of a row in grey levels, (x + round_by) − round_by; the partners' sums become 0."""
    for j in range(n):
        x = (own[j] + partners[j] + plane[at + j]) * norm[j] * back
        own[j] = (x + round_by) - round_by
        partners[j] = np.float32(0.0)


@njit(cache=True, nogil=True)
def put(means: Floats, first: Any, row: Any) -> None:
    """The columns from `first` on as pixels [width, C], float32 or bytes."""
    width, channels = row.shape
    pixels = row.reshape(-1)
    if channels == 3:
        red, green, blue = means[0], means[1], means[2]
        for j in range(U(width)):
            pixels[U(3) * j] = red[first + j]
            pixels[U(3) * j + U(1)] = green[first + j]
            pixels[U(3) * j + U(2)] = blue[first + j]
    else:
        grey = means[0]
        for j in range(U(width)):
            pixels[j] = grey[first + j]


@njit(cache=True, nogil=True)
def bilateral_pixels(
    padded: Any, taps: Any, powers: Floats, scale: Any, radius: int, out: Any, round_by: Any
) -> None:
    """out [height, width, C] ← the filtered pixels of padded [height + 2·radius, width + 2·radius, C], C ∈ {1, 3}.

    taps: (dy, dx) of one half of the window; powers [taps, 5]: `POWERS` times their spatial weights.
    scale: of the grey levels, so that a pair weighs 2^(−(Σ|Δ|)²). round_by: `ROUND` for bytes, else 0.
    """
    rows, columns, channels = padded.shape
    blocks = (columns + LANES - 1) // LANES
    # what lies beyond a row is read and weighed, too, but never for a pixel of the result
    margin = (radius // LINE + 1) * LINE
    stride = blocks * LANES
    size = rows * stride + 2 * margin
    planes = aligned(channels, size)
    load(padded, scale, planes, margin, stride)
    # an odd number of lines apart: at equal page offsets stores to one sum would stall the loads of another
    length = ((stride + 2 * margin) // LINE | 1) * LINE
    both = aligned((radius + 2) * (channels + 1), length).reshape(radius + 2, channels + 1, length)
    ring, own = both[:-1], both[-1]
    step, row_bytes = 4 * length, 4 * length * (channels + 1)
    ring_at, own_at = np.int64(ring.ctypes.data) + 4 * margin, np.int64(own.ctypes.data) + 4 * margin
    back, n = np.float32(1.0) / scale, U(stride + 2 * margin)
    for y in range(rows - radius):
        own[:] = 0
        start = margin + y * stride
        here = np.int64(planes.ctypes.data) + 4 * start
        for t in range(len(taps)):
            dy, dx = taps[t, 0], taps[t, 1]
            there = here + 4 * (dy * stride + dx)
            other = ring_at + (y + dy) % (radius + 1) * row_bytes + 4 * dx
            table = np.int64(powers.ctypes.data) + 4 * len(POWERS) * t
            if channels == 3:
                meet_colour(here, there, own_at, other, table, 4 * size, step, blocks)
            else:
                meet_grey(here, there, own_at, other, table, 4 * size, step, blocks)
        partners = ring[y % (radius + 1)]
        invert(own[channels], partners[channels], n)
        for c in range(channels):
            mean(own[c], partners[c], planes[c], U(start - margin), own[channels], n, back, round_by)
        if y >= radius:
            put(own, U(margin + radius), out[y - radius])
