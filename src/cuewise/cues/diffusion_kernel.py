"""Compiled inner loops of diffusion: one pass per step, in fixed point, written so that every loop vectorises.

Grey levels are int32 with 22 binary places: differences are exact, so twenty steps stay within 1e-4 grey levels of
double precision, and this costs no time against float32 (which strays by 2e-4 where edges sharpen).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import FAST, LOG2_E, exp2_near, exp2_product, intrinsic

Fixed = NDArray[np.int32]
Floats = NDArray[np.float32]

ONE = np.float32(2**22)  # one grey level; 255 of them leave a factor two of headroom in 32 bits
INVERSE = np.float32(2**-22)
LANES = 16  # rows are padded to whole vectors
GENTLE = 4  # option 1 where κ keeps every exponent in the range of `exp2_near`
GENTLE_KAPPA = 15.0
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


def row_of(option: int) -> Any:
    """The compiled row of one option: a branch inside the loops would cost a quarter of the time.

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


steep_row, gentle_row, rational_row, tukey_row = row_of(1), row_of(GENTLE), row_of(2), row_of(3)


@njit(cache=True, nogil=True)
def diffuse_planes(images: Floats, out: Floats, steps: int, gamma: Any, k: Any, option: int) -> None:
    """Each channel of images [N, H, W, C] separately into `out`; a plane and its twin stay in the second-level cache."""
    count, height, width, channels = images.shape
    stride = (width + LANES - 1) // LANES * LANES
    odd = steps % 2
    # Half a page apart: at equal page offsets the stores to one twin would stall the loads from the other.
    slots = np.zeros((channels + 1, height * stride + 33 * LANES), np.int32)
    across, up = np.zeros(stride + LANES, np.float32), np.zeros(stride, np.float32)
    w, s = U(width), U(stride)
    for n in range(count):
        load(images[n], slots[1:], stride)
        for c in range(channels):
            # After an odd number of steps a plane ends in its twin, and its own slot is the next one's twin.
            one, two = slots[c + 1], slots[c * odd]
            for _ in range(steps):
                up[:] = 0
                for i in range(height):
                    # The last row is its own next: no flux.
                    at, below = U(i * stride), U(min(i + 1, height - 1) * stride)
                    if option == GENTLE:
                        gentle_row(one, two, at, below, w, s, gamma, k, across, up)
                    elif option == 1:
                        steep_row(one, two, at, below, w, s, gamma, k, across, up)
                    elif option == 2:
                        rational_row(one, two, at, below, w, s, gamma, k, across, up)
                    else:
                        tukey_row(one, two, at, below, w, s, gamma, k, across, up)
                one, two = two, one
        store(slots[1 - odd :], out[n], stride)


@njit(cache=True, nogil=True)
def load(image: Floats, planes: Fixed, stride: int) -> None:
    """Grey levels [H, W, C] → fixed point, one plane per channel, rows `stride` apart."""
    height, width, channels = image.shape
    for i in range(height):
        pixels, at = image[i].reshape(-1), U(i * stride)
        if channels == 3:  # a separate loop: it vectorises only with a known step
            red, green, blue = planes[0], planes[1], planes[2]
            for j in range(U(width)):
                red[at + j] = np.int32(pixels[U(3) * j] * ONE)
                green[at + j] = np.int32(pixels[U(3) * j + U(1)] * ONE)
                blue[at + j] = np.int32(pixels[U(3) * j + U(2)] * ONE)
        else:
            for c in range(channels):
                for j in range(width):
                    planes[c, i * stride + j] = np.int32(image[i, j, c] * ONE)


@njit(cache=True, nogil=True)
def store(planes: Fixed, image: Floats, stride: int) -> None:
    """Fixed point → grey levels, the way back."""
    height, width, channels = image.shape
    for i in range(height):
        pixels, at = image[i].reshape(-1), U(i * stride)
        if channels == 3:
            red, green, blue = planes[0], planes[1], planes[2]
            for j in range(U(width)):
                pixels[U(3) * j] = np.float32(red[at + j]) * INVERSE
                pixels[U(3) * j + U(1)] = np.float32(green[at + j]) * INVERSE
                pixels[U(3) * j + U(2)] = np.float32(blue[at + j]) * INVERSE
        else:
            for c in range(channels):
                for j in range(width):
                    image[i, j, c] = np.float32(planes[c, i * stride + j]) * INVERSE
