"""Weighted sums of bytes in vector registers: loops that the compiler would not vectorise by itself.

They are written as vectors in the compiler's own language, so they run on every processor it knows.
All positions and steps are addresses in bytes; nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BITS = 22  # weights are in units of 2^-22
_I8, _I32 = ir.IntType(8), ir.IntType(32)

# (source, its step to the next row, step to the next tap, weights, count of taps, target, its step to the next row)
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
                builder.store(part, builder.inttoptr(to, part.type.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 7), code

    made: Any = intrinsic(weigh)
    return cast(Weigher, made)


def _sums(builder: Any, addresses: list[Any], tap_step: Any, weights: Any, n: Any, lanes: int) -> Any:
    """Vector of len(addresses)·lanes bytes, rounded to nearest."""
    count = lanes * len(addresses)
    wide = ir.VectorType(_I32, count)
    total = cgutils.alloca_once(builder, wide)
    builder.store(ir.Constant(wide, [1 << (BITS - 1)] * count), total)
    with cgutils.for_range(builder, n, intp=n.type) as loop:
        offset = builder.mul(loop.index, tap_step)
        parts = [_load(builder, builder.add(address, offset), lanes) for address in addresses]
        at = builder.add(weights, builder.mul(loop.index, n.type(4)))
        weight = builder.load(builder.inttoptr(at, _I32.as_pointer()), align=4)
        product = builder.mul(builder.zext(_join(builder, parts), wide), _splat(builder, weight, count))
        builder.store(builder.add(builder.load(total), product), total)
    shifted = builder.lshr(builder.load(total), ir.Constant(wide, [BITS] * count))
    return builder.trunc(shifted, ir.VectorType(_I8, count))


def _load(builder: Any, address: Any, lanes: int) -> Any:
    return builder.load(builder.inttoptr(address, ir.VectorType(_I8, lanes).as_pointer()), align=1)


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


def _splat(builder: Any, value: Any, count: int) -> Any:
    one = builder.insert_element(ir.Constant(ir.VectorType(_I32, count), ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, count), [0] * count))


# the same pixel of four rows: reads and writes four bytes each, of which the fourth is to be overwritten
weigh_4_pixels = _weigher(rows=4, lanes=4, stored=4)
weigh_4_last_pixels = _weigher(rows=4, lanes=4, stored=3)
# one pixel: reads four bytes, writes three
weigh_pixel = _weigher(rows=1, lanes=4, stored=3)
weigh_32_bytes = _weigher(rows=1, lanes=32, stored=32)
weigh_byte = _weigher(rows=1, lanes=1, stored=1)
