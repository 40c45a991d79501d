"""Compiled inner loops of diffusion: one pass per step, in place, in vectors.

Fixed-point grey levels are int32 with 22 binary places: differences are exact, so twenty steps stay within 1e-4 grey levels
of double precision. float32 about the middle grey, half as coarse as about black, stays there, too, and takes fewer
operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import (
    EXP2,
    FAST,
    LOG2_E,
    MAGIC,
    ROUND,
    exp2_near,
    exp2_product,
    intrinsic,
)
from cuewise.cues.vector_ir import FLOATS, INTS, Vectors, floats
from cuewise.cues.vector_ir import LANES as VECTOR

Fixed = NDArray[np.int32]
Floats = NDArray[np.float32]

ONE = np.float32(2**22)  # one grey level; 255 of them leave a factor two of headroom in 32 bits
INVERSE = np.float32(2**-22)
LANES = 16  # rows are padded to whole vectors
GENTLE = 4  # option 1 where κ keeps every exponent in the range of `exp2_near`
GENTLE_KAPPA = 15.0
EXPONENTIAL = (1, GENTLE)
MIDDLE = np.float32(128)
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


@njit(cache=True, nogil=True, inline="always", fastmath=FAST, error_model="numpy")
def conductance(a: Any, b: Any, option: Any, scale: Any) -> Any:
    """scale·g as a function of a·b = k·δ²: 1 Perona–Malik's exponential, 2 their rational one, 3 Tukey's biweight.

    GENTLE is 1 by the cheaper exponential.
    """
    if option == GENTLE:
        return exp2_near(a, b, scale)
    if option == 1:
        return exp2_product(a, b, scale)
    if option == 2:
        return scale / (np.float32(1.0) + a * b)
    inside = max(np.float32(1.0) - a * b, np.float32(0.0))
    return (np.float32(0.5) * scale) * inside * inside


def constant(kappa: float, option: int) -> np.float32:
    """The k of `conductance` in fixed-point units: −log₂e/κ², 1/κ² or 1/2κ²; κ of ¼ grey level is the least."""
    factor = {1: -float(LOG2_E), GENTLE: -float(LOG2_E), 2: 1.0, 3: 0.5}[option]
    return np.float32(factor / (max(kappa, 0.25) * float(ONE)) ** 2)


def conductances(v: Vectors, option: int, gamma: Any, k: Any) -> Any:
    """δ ↦ γ·g(δ)·δ of one option on vectors, as `conductance` has it; for the exponential in units where k = −1."""
    b = v.builder
    one, magic = floats(1.0), floats(float(MAGIC))

    def rational(delta: Any) -> Any:
        return b.fmul(b.fdiv(gamma, v.fma(b.fmul(k, delta), delta, one)), delta)

    def biweight(delta: Any) -> Any:
        inside = v.greatest(v.fma(b.fmul(b.fneg(k), delta), delta, one), floats(0.0))
        return b.fmul(b.fmul(b.fmul(b.fmul(floats(0.5), gamma), inside), inside), delta)

    powers = [b.fmul(gamma, floats(c)) for c in EXP2]

    def exponential(delta: Any) -> Any:
        minus = b.fneg(delta)
        z = v.greatest(v.fma(minus, delta, magic), floats(float(MAGIC) - 126.0))
        p = v.polynomial(powers, v.fma(minus, delta, b.fsub(magic, z)))
        return b.fmul(b.fmul(p, b.bitcast(v.shifted(z, 23), FLOATS)), delta)

    def gentle(delta: Any) -> Any:
        z = v.fma(delta, delta, floats(float(ROUND)))
        p = v.polynomial(powers, v.fma(b.fneg(delta), delta, b.fsub(z, floats(float(ROUND)))))
        p, n = b.bitcast(p, INTS), v.shifted(z, 23)
        larger = b.select(b.icmp_unsigned(">", p, n), p, n)
        return b.fmul(b.bitcast(b.sub(larger, n), FLOATS), delta)

    return {1: exponential, 2: rational, 3: biweight, GENTLE: gentle}[option]


def row_of(option: int) -> Any:
    """One step of one option on one row, in place; `blocks` vectors, of float32 for the exponential, else of int32.

    Addresses: row, the next one `below`, and `up`, which has the fluxes from above, then those to below. Behind the last
    pixel of a row stands the same value again: no flux leaves the image.
    """

    real = option in EXPONENTIAL

    def step(typing: Any, row: Any, below: Any, up: Any, blocks: Any, gamma: Any, k: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            row, below, up, blocks, gamma, k = args
            v, word = Vectors(builder), row.type
            kind, minus = (FLOATS, builder.fsub) if real else (INTS, v.difference)
            flux = conductances(v, option, v.splat(gamma), v.splat(k))
            before = cgutils.alloca_once(builder, FLOATS)
            builder.store(floats(0.0), before)
            with cgutils.for_range(builder, blocks, intp=word) as loop:
                x = builder.mul(loop.index, word(4 * VECTOR))
                here, above = builder.add(row, x), builder.add(up, x)
                own = v.load(here, kind)
                down = flux(minus(v.load(builder.add(below, x), kind), own))
                right = flux(minus(v.load(builder.add(here, word(4)), kind), own))
                left = v.behind(builder.load(before), right)
                gain = builder.fadd(builder.fsub(down, v.load(above)), builder.fsub(right, left))
                v.store(builder.fadd(own, gain) if real else builder.add(own, v.whole(gain)), here)
                v.store(down, above)
                builder.store(right, before)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 4, types.float32, types.float32), code

    return intrinsic(step)


steep_row, gentle_row, rational_row, tukey_row = row_of(1), row_of(GENTLE), row_of(2), row_of(3)


def diffuse_planes(images: Floats, out: Floats, steps: int, gamma: Any, kappa: float, option: int) -> None:
    """Each channel of images [N, H, W, C] separately into `out`; a plane stays in the second-level cache.

    Fixed point for the rational conductance and Tukey's, whose cut-off is sharp; float32 about the middle grey for the
    exponential, as exact there, in units that make its exponent −δ².
    """
    _, height, width, channels = images.shape
    stride = (width // VECTOR + 1) * VECTOR  # one column more than pixels, at least
    real = option in EXPONENTIAL
    planes = np.zeros((channels, height * stride + VECTOR), np.float32 if real else np.int32)
    k = constant(kappa, option)
    centre, one = (MIDDLE, ONE * np.sqrt(-k)) if real else (np.float32(0), ONE)
    _diffuse(images, out, planes, stride, steps, gamma, k, option, centre, one)


@njit(cache=True, nogil=True)
def _diffuse(
    images: Floats,
    out: Floats,
    planes: Any,
    stride: int,
    steps: int,
    gamma: Any,
    k: Any,
    option: int,
    centre: Any,
    one: Any,
) -> None:
    """See `diffuse_planes`; `one` is a grey level in the units of the planes, `centre` their zero."""
    count, height, width, channels = images.shape
    blocks = (width + VECTOR - 1) // VECTOR
    up = np.zeros(stride, np.float32)
    for n in range(count):
        load(images[n], planes, stride, centre, one)
        for c in range(channels):
            plane = planes[c]
            for i in range(height):
                plane[i * stride + width] = plane[i * stride + width - 1]
            for _ in range(steps):
                up[:] = 0
                for i in range(height):
                    # The last row is its own next: no flux.
                    at = np.int64(plane.ctypes.data) + 4 * stride * i
                    below = at + 4 * stride if i + 1 < height else at
                    if option == GENTLE:
                        gentle_row(at, below, up.ctypes.data, blocks, gamma, k)
                    elif option == 1:
                        steep_row(at, below, up.ctypes.data, blocks, gamma, k)
                    elif option == 2:
                        rational_row(at, below, up.ctypes.data, blocks, gamma, k)
                    else:
                        tukey_row(at, below, up.ctypes.data, blocks, gamma, k)
                    plane[i * stride + width] = plane[i * stride + width - 1]
        store(planes, out[n], stride, centre, np.float32(1) / one)


@njit(cache=True, nogil=True)
def load(image: Floats, planes: Any, stride: int, centre: Any, one: Any) -> None:
    """Grey levels [H, W, C] → (level − centre)·one, one plane per channel, rows `stride` apart."""
    height, width, channels = image.shape
    for i in range(height):
        pixels, at = image[i].reshape(-1), U(i * stride)
        if channels == 3:  # a separate loop: it vectorises only with a known step
            red, green, blue = planes[0], planes[1], planes[2]
            for j in range(U(width)):
                red[at + j] = (pixels[U(3) * j] - centre) * one
                green[at + j] = (pixels[U(3) * j + U(1)] - centre) * one
                blue[at + j] = (pixels[U(3) * j + U(2)] - centre) * one
        else:
            for c in range(channels):
                for j in range(width):
                    planes[c, i * stride + j] = (image[i, j, c] - centre) * one


@njit(cache=True, nogil=True)
def store(planes: Any, image: Floats, stride: int, centre: Any, inverse: Any) -> None:
    """The way back: value·inverse + centre."""
    height, width, channels = image.shape
    for i in range(height):
        pixels, at = image[i].reshape(-1), U(i * stride)
        if channels == 3:
            red, green, blue = planes[0], planes[1], planes[2]
            for j in range(U(width)):
                pixels[U(3) * j] = np.float32(red[at + j]) * inverse + centre
                pixels[U(3) * j + U(1)] = np.float32(green[at + j]) * inverse + centre
                pixels[U(3) * j + U(2)] = np.float32(blue[at + j]) * inverse + centre
        else:
            for c in range(channels):
                for j in range(width):
                    image[i, j, c] = np.float32(planes[c, i * stride + j]) * inverse + centre
