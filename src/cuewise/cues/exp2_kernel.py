"""Powers of two in loops that vectorise: a polynomial for the fraction, the exponent bits for the whole part."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit, types

FAST = {"contract", "nsz", "arcp"}  # fused multiply-add, but no reordering of sums
LOG2_E = np.float32(1.4426950408889634)
ROUND = np.float32(1.5 * 2**23)  # x + ROUND holds round(x) in its low bits
MAGIC = np.float32(1.5 * 2**23 + 127)  # the same, biased as an exponent is
# 2^f for f ∈ [−½, ½] to 2e-7, the highest power first
EXP2 = (
    1.3276471781838624e-3,
    9.675541332768883e-3,
    5.550713274149757e-2,
    2.4022119723881838e-1,
    6.931469670643619e-1,
    1.0000000716546724,
)
intrinsic: Any = extending.intrinsic  # its types describe the builder, not the call


@intrinsic
def power_of_two(_context: Any, z: Any) -> Any:
    """2^n of z = n + MAGIC: the low bits of z become the exponent."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        return builder.bitcast(
            builder.shl(builder.bitcast(args[0], i32), ir.Constant(i32, 23)), ir.FloatType()
        )

    return types.float32(types.float32), build


@intrinsic
def divided(_context: Any, p: Any, z: Any) -> Any:
    """p / 2^n of p > 0 and z = n + ROUND, 0 ≤ n < 512: n is taken from the exponent of p; 0 where that is too small."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        p, z = (builder.bitcast(a, i32) for a in args)
        n = builder.shl(z, ir.Constant(i32, 23))
        larger = builder.select(builder.icmp_unsigned(">", p, n), p, n)
        return builder.bitcast(builder.sub(larger, n), ir.FloatType())

    return types.float32(types.float32, types.float32), build


@intrinsic
def fused(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c in one instruction, also where the product is used twice."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), build


@njit(cache=True, nogil=True, inline="always", fastmath=FAST)
def exp2_fraction(f: Any, scale: Any) -> Any:
    """scale·2^f for f ∈ [−½, ½] to 2e-7."""
    p = scale * np.float32(EXP2[0])
    p = p * f + scale * np.float32(EXP2[1])
    p = p * f + scale * np.float32(EXP2[2])
    p = p * f + scale * np.float32(EXP2[3])
    p = p * f + scale * np.float32(EXP2[4])
    return p * f + scale * np.float32(EXP2[5])


@njit(cache=True, nogil=True, inline="always", fastmath=FAST)
def exp2_product(a: Any, b: Any, scale: Any) -> Any:
    """scale·2^(a·b) for −10⁶ < a·b ≤ 0: a·b = n + f with a whole n.

    Below n = −126 the polynomial leaves its range, but 2^−126 still makes the product vanish.
    """
    z = max(fused(a, b, MAGIC), MAGIC - np.float32(126.0))
    return exp2_fraction(fused(a, b, MAGIC - z), scale) * power_of_two(z)


@njit(cache=True, nogil=True, inline="always", fastmath=FAST)
def exp2_near(a: Any, b: Any, scale: Any) -> Any:
    """The same for −511 < a·b ≤ 0 in fewer operations; scale > 0."""
    z = fused(-a, b, ROUND)
    return divided(exp2_fraction(fused(a, b, z - ROUND), scale), z)
