"""Compiled inner loops of diffusion: one pass a step, in fixed point, written so that every loop vectorises.

Grey levels are int32 with 22 binary places: differences are exact, so twenty steps stay within 1e-4 grey levels of
double precision, and this costs no time against float32 (which strays by 2e-4 where edges sharpen).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit, types
from numpy.typing import NDArray

Fixed = NDArray[np.int32]
Floats = NDArray[np.float32]

FAST = {"contract", "nsz", "arcp"}  # fused multiply-add, but no reordering of sums
LOG2_E = np.float32(1.4426950408889634)
ONE = np.float32(2**22)  # one grey level; 255 of them leave a factor two of headroom in 32 bits
INVERSE = np.float32(2**-22)
LANES = 16  # rows are padded to whole vectors
MAGIC = np.float32(1.5 * 2**23 + 127)  # x + MAGIC holds round(x) in its low bits, biased as an exponent is
intrinsic: Any = extending.intrinsic  # its types describe the builder, not the call
U = np.uint64  # unsigned indices: a signed one may be negative to numba, and the check stops vectorising


@intrinsic
def difference(_context: Any, a: Any, b: Any) -> Any:
    """float32(a − b) of two int32, without numba's detour through int64."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.sitofp(builder.sub(args[0], args[1]), ir.FloatType())

    return types.float32(types.int32, types.int32), build


@intrinsic
def moved(_context: Any, a: Any, x: Any) -> Any:
    """int32 a plus float32 x cut to int32."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.add(args[0], builder.fptosi(args[1], ir.IntType(32)))

    return types.int32(types.int32, types.float32), build


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
def fused(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c in one instruction, also where the product is used twice."""

    def build(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), build


@njit(cache=True, nogil=True, inline="always", fastmath=FAST)
def exp2_product(a: Any, b: Any, scale: Any) -> Any:
    """scale·2^(a·b) for −10⁶ < a·b ≤ 0 to 2e-7: a·b = n + f, polynomial in f ∈ [−½, ½], then the exponent bits.

    Below n = −126 the polynomial leaves its range, but 2^−126 still makes the product vanish.
    """
    z = max(fused(a, b, MAGIC), MAGIC - np.float32(126.0))
    f = fused(a, b, MAGIC - z)
    p = scale * np.float32(1.3276471781838624e-3)
    p = p * f + scale * np.float32(9.675541332768883e-3)
    p = p * f + scale * np.float32(5.550713274149757e-2)
    p = p * f + scale * np.float32(2.4022119723881838e-1)
    p = p * f + scale * np.float32(6.931469670643619e-1)
    p = p * f + scale * np.float32(1.0000000716546724)
    return p * power_of_two(z)


@njit(cache=True, nogil=True, inline="always", fastmath=FAST, error_model="numpy")
def conductance(a: Any, b: Any, option: Any, scale: Any) -> Any:
    """scale·g as a function of a·b = k·δ²: 1 Perona–Malik's exponential, 2 their rational one, 3 Tukey's biweight."""
    if option == 1:
        return exp2_product(a, b, scale)
    if option == 2:
        return scale / (np.float32(1.0) + a * b)
    inside = max(np.float32(1.0) - a * b, np.float32(0.0))
    return (np.float32(0.5) * scale) * inside * inside


def constant(kappa: float, option: int) -> np.float32:
    """The k of `conductance` in fixed-point units: −log₂e/κ², 1/κ² or 1/2κ²; κ of ¼ grey level is the least."""
    factor = {1: -float(LOG2_E), 2: 1.0, 3: 0.5}[option]
    return np.float32(factor / (max(kappa, 0.25) * float(ONE)) ** 2)


def row_of(option: int) -> Any:
    """The compiled row of one option: deciding inside the loops would cost a quarter of the time.

    new ← old + γ·div on the row that begins at `at`, the next one at `below`; `stride` columns of which `width` count.
    `across` [LANES+stride] takes the fluxes along the row, aligned; `up` [stride] has those from above, then those to below.
    """

    @njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
    def row(
        old: Fixed,
        new: Fixed,
        at: Any,
        below: Any,
        width: Any,
        stride: Any,
        gamma: Any,
        k: Any,
        across: Floats,
        up: Floats,
    ) -> None:
        one, first = U(1), U(LANES)
        for j in range(stride):
            delta = difference(old[at + j + one], old[at + j])
            across[first + j] = conductance(k * delta, delta, option, gamma) * delta
        across[first + width - one] = np.float32(0)  # no flux leaves the image
        before = first - one
        for j in range(stride):
            delta = difference(old[below + j], old[at + j])
            flux = conductance(k * delta, delta, option, gamma) * delta
            new[at + j] = moved(old[at + j], (flux - up[j]) + (across[first + j] - across[before + j]))
            up[j] = flux

    return row


exponential_row, rational_row, tukey_row = row_of(1), row_of(2), row_of(3)


@njit(cache=True, nogil=True)
def diffuse_planes(images: Floats, out: Floats, steps: int, gamma: Any, k: Any, option: int) -> None:
    """Each channel of images [N, H, W, C] by itself into `out`; a plane and its twin stay in the second-level cache."""
    count, height, width, channels = images.shape
    stride = (width + LANES - 1) // LANES * LANES
    # Half a page apart: at equal page offsets the stores to one twin would stall the loads from the other.
    both = np.zeros((2, height * stride + 33 * LANES), np.int32)
    one, two = both[0], both[1]
    across, up = np.zeros(stride + LANES, np.float32), np.zeros(stride, np.float32)
    w, s = U(width), U(stride)
    for plane in range(count * channels):
        n, c = plane // channels, plane % channels
        load(images[n, :, :, c], one, stride)
        for _ in range(steps):
            up[:] = 0
            for i in range(height):
                at, below = (
                    U(i * stride),
                    U(min(i + 1, height - 1) * stride),
                )  # the last row: its own next, no flux
                if option == 1:
                    exponential_row(one, two, at, below, w, s, gamma, k, across, up)
                elif option == 2:
                    rational_row(one, two, at, below, w, s, gamma, k, across, up)
                else:
                    tukey_row(one, two, at, below, w, s, gamma, k, across, up)
            one, two = two, one
        store(one, out[n, :, :, c], stride)


@njit(cache=True, nogil=True)
def load(plane: Floats, fixed: Fixed, stride: int) -> None:
    """Grey levels → fixed point, rows `stride` apart."""
    height, width = plane.shape
    for i in range(height):
        for j in range(width):
            fixed[i * stride + j] = np.int32(plane[i, j] * ONE)


@njit(cache=True, nogil=True)
def store(fixed: Fixed, plane: Floats, stride: int) -> None:
    """Fixed point → grey levels."""
    height, width = plane.shape
    for i in range(height):
        for j in range(width):
            plane[i, j] = np.float32(fixed[i * stride + j]) * INVERSE
