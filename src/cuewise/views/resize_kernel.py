"""Crop and resize with Pillow's bilinear arithmetic, to the bit: 22-bit weights, 8 bits between the passes.

The innermost sums are written as vectors in the compiler's own language, because it would not vectorise them by
itself; so they run on every processor it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import intrinsic
from cuewise.cues.vector_ir import load, splat, store
from cuewise.kernels import kernel, part

Pixels = NDArray[np.uint8]
Starts = NDArray[np.int64]  # n×2: first source pixel, count of taps
Taps = NDArray[np.int32]  # n×k: weights in units of 2^-22

BITS = 22
BLOCK = 32  # bytes of a row that the vertical pass weighs at a time
_I8, _I32 = ir.IntType(8), ir.IntType(32)

# all in bytes: source, its step to the next row, step to the next tap, weights, count of taps, target, its step
Weigher = Callable[[int, int, int, int, int, int, int], None]


def _weigher(rows: int, lanes: int, stored: int) -> Weigher:
    """For each of `rows` rows, Σ over the taps of weight · byte for `lanes` neighbours; `stored` are written."""

    def weigh(
        typing: Any,
        source: Any,
        step: Any,
        tap_step: Any,
        weights: Any,
        n: Any,
        target: Any,
        target_step: Any,
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, step, tap_step, weights, n, target, target_step = args
            addresses = [builder.add(source, builder.mul(step, step.type(r))) for r in range(rows)]
            sums = _sums(builder, addresses, tap_step, weights, n, lanes)
            for r in range(rows):
                to = builder.add(target, builder.mul(target_step, step.type(r)))
                part = _part(builder, sums, r * lanes, stored)
                store(builder, part, to)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 7), code

    return cast(Weigher, intrinsic(weigh))


def _sums(builder: Any, addresses: list[Any], tap_step: Any, weights: Any, n: Any, lanes: int) -> Any:
    """Vector of len(addresses)·lanes bytes, rounded to nearest."""
    count = lanes * len(addresses)
    wide = ir.VectorType(_I32, count)
    total = cgutils.alloca_once(builder, wide)
    builder.store(ir.Constant(wide, [1 << (BITS - 1)] * count), total)
    with cgutils.for_range(builder, n, intp=n.type) as loop:
        offset = builder.mul(loop.index, tap_step)
        parts = [load(builder, builder.add(a, offset), ir.VectorType(_I8, lanes)) for a in addresses]
        at = builder.add(weights, builder.mul(loop.index, n.type(4)))
        weight = load(builder, at, _I32, align=4)
        product = builder.mul(builder.zext(_join(builder, parts), wide), splat(builder, weight, count))
        builder.store(builder.add(builder.load(total), product), total)
    shifted = builder.lshr(builder.load(total), ir.Constant(wide, [BITS] * count))
    return builder.trunc(shifted, ir.VectorType(_I8, count))


def _join(builder: Any, parts: list[Any]) -> Any:
    """Vectors end to end, two by two."""
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        mask = ir.Constant(ir.VectorType(_I32, count), list(range(count)))
        parts = [builder.shuffle_vector(a, b, mask) for a, b in zip(parts[::2], parts[1::2])]
    return parts[0]


def _part(builder: Any, vector: Any, first: int, count: int) -> Any:
    mask = ir.Constant(ir.VectorType(_I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(vector, vector, mask)


# the same pixel of four rows: reads and writes four bytes each, of which the fourth is to be overwritten
weigh_4_pixels = _weigher(rows=4, lanes=4, stored=4)
weigh_4_last_pixels = _weigher(rows=4, lanes=4, stored=3)
# one pixel: reads four bytes, writes three
weigh_pixel = _weigher(rows=1, lanes=4, stored=3)
weigh_32_bytes = _weigher(rows=1, lanes=32, stored=32)
weigh_byte = _weigher(rows=1, lanes=1, stored=1)


@part
def weights(source: int, target: int, first: int, starts: Starts, taps: Taps) -> None:
    """Triangle filter of `source` → `target` pixels, for the outputs from `first` on."""
    scale = source / target
    support = max(scale, 1.0)
    inverse = 1.0 / support
    k = np.empty(taps.shape[1])
    for i in range(starts.shape[0]):
        middle = (first + i + 0.5) * scale
        low = max(0, int(middle - support + 0.5))
        n = min(source, int(middle + support + 0.5)) - low
        total = 0.0
        for t in range(n):
            k[t] = max(0.0, 1.0 - abs((t + low - middle + 0.5) * inverse))
            total += k[t]
        for t in range(n):
            taps[i, t] = np.int32(0.5 + k[t] / total * (1 << BITS))
        while n > 1 and taps[i, n - 1] == 0:
            n -= 1
        starts[i, 0], starts[i, 1] = low, n


@part
def across(source: int, stride: int, rows: int, starts: Starts, taps: Taps, target: int, step: int) -> None:
    """Horizontal pass over addresses: `rows` rows, `stride` apart in the source and `step` in the target."""
    last = starts.shape[0] - 1
    weights_at, tap_bytes = taps.ctypes.data, 4 * taps.shape[1]
    quads = rows // 4 * 4
    for y in range(0, quads, 4):
        line, to = source + y * stride, target + y * step
        # four bytes are written for a pixel of three: the fourth is overwritten by the next pixel …
        for x in range(last):
            at, n = line + 3 * starts[x, 0], starts[x, 1]
            weigh_4_pixels(at, stride, 3, weights_at + x * tap_bytes, n, to + 3 * x, step)
        # … which the last one does not have
        at, n = line + 3 * starts[last, 0], starts[last, 1]
        weigh_4_last_pixels(at, stride, 3, weights_at + last * tap_bytes, n, to + 3 * last, step)
    for y in range(quads, rows):
        line, to = source + y * stride, target + y * step
        for x in range(last + 1):
            at, n = line + 3 * starts[x, 0], starts[x, 1]
            weigh_pixel(at, 0, 3, weights_at + x * tap_bytes, n, to + 3 * x, 0)


@part
def down(source: int, stride: int, length: int, starts: Starts, taps: Taps, target: int, step: int) -> None:
    """Vertical pass over addresses: rows of `length` bytes."""
    weights_at, tap_bytes = taps.ctypes.data, 4 * taps.shape[1]
    for y in range(starts.shape[0]):
        line, n = source + starts[y, 0] * stride, starts[y, 1]
        to, k = target + y * step, weights_at + y * tap_bytes
        if length < BLOCK:
            for x in range(length):
                weigh_byte(line + x, 0, stride, k, n, to + x, 0)
        else:
            for x in range(0, length - BLOCK, BLOCK):
                weigh_32_bytes(line + x, 0, stride, k, n, to + x, 0)
            x = length - BLOCK  # overlaps the block before: the same bytes are written twice
            weigh_32_bytes(line + x, 0, stride, k, n, to + x, 0)


@part
def reverse(rows: Starts | Taps) -> None:
    """Turn the order of rows around, in place; loops instead of slices, which take seconds to compile."""
    for i in range(rows.shape[0] // 2):
        j = rows.shape[0] - 1 - i
        for k in range(rows.shape[1]):
            rows[i, k], rows[j, k] = rows[j, k], rows[i, k]


@kernel
def resize(
    image: Pixels,
    crop: tuple[int, int, int, int],
    full: tuple[int, int],
    window: tuple[int, int],
    flip: bool,
    scratch: Pixels,
    out: Pixels,
) -> None:
    """Resize crop (top, left, height, width) to full (height, width); write the window (top, left) of it to out.

    scratch: at least `scratch_bytes` long.
    """
    top, left, height, width = crop
    stride = 3 * image.shape[1]
    rows, columns = out.shape[0], out.shape[1]
    y_starts, x_starts = np.empty((rows, 2), np.int64), np.empty((columns, 2), np.int64)
    y_taps = np.empty((rows, tap_count(height, full[0])), np.int32)
    x_taps = np.empty((columns, tap_count(width, full[1])), np.int32)
    weights(height, full[0], window[0], y_starts, y_taps)
    weights(width, full[1], window[1], x_starts, x_taps)
    if flip:
        reverse(x_starts)
        reverse(x_taps)
    first = y_starts[0, 0]
    used = y_starts[rows - 1, 0] + y_starts[rows - 1, 1] - first
    source = np.int64(image.ctypes.data) + (top + first) * stride + 3 * left
    for y in range(rows):
        y_starts[y, 0] -= first
    step = 3 * columns
    middle, target = np.int64(scratch.ctypes.data), np.int64(out.ctypes.data)
    # Pillow 13: the vertical pass goes first where the height shrinks by more than twice what the width does
    shrink_y, shrink_x = height - full[0], width - full[1]
    if shrink_y > 0 and shrink_y > 2 * shrink_x:
        down(source, stride, 3 * width, y_starts, y_taps, middle, 3 * width)
        across(middle, 3 * width, rows, x_starts, x_taps, target, step)
        return
    at_end = top + first + used == image.shape[0] and left + width == image.shape[1]
    inside = used - 1 if at_end else used
    across(source, stride, inside, x_starts, x_taps, middle, step)
    if at_end:
        # the last row is read from a copy, because pixels are read four bytes at a time
        tail = scratch[used * step :]
        for x in range(3 * width):
            tail[x] = image[image.shape[0] - 1, left + x // 3, x % 3]
        across(
            np.int64(tail.ctypes.data), stride, used - inside, x_starts, x_taps, middle + inside * step, step
        )
    down(middle, step, step, y_starts, y_taps, target, step)


@part
def tap_count(source: int, target: int) -> int:
    """The most weights that one output pixel can have."""
    return ceil(max(source / target, 1.0)) * 2 + 1


def scratch_bytes(height: int, width: int, rows: int, columns: int) -> int:
    """Bytes for what lies between the passes, one copied row, and a pixel read four bytes at a time."""
    return 3 * (max(height * columns, width * rows) + width) + 64
