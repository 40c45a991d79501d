"""Copy square patches into a canvas: bytes only, so any number type and any number of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import intrinsic

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@intrinsic
def _copy(typing: Any, target: Any, source: Any, n: Any) -> Any:
    """memcpy between addresses: a loop over a short row costs several times as much."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(address, pointer) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), code


@njit(cache=True, nogil=True)
def inside(tops: Ints, lefts: Ints, bottom: int, right: int) -> bool:
    """Whether all corners lie in 0 … bottom and 0 … right."""
    found = True
    for i in range(tops.size):
        found &= (0 <= tops[i] <= bottom) & (0 <= lefts[i] <= right)
    return found


@njit(cache=True, nogil=True)
def tile(source: Bytes, pixel: int, d: int, tops: Ints, lefts: Ints, out: Bytes) -> None:
    """Row copies of d×d patches, row by row from the top left; the last ones are cut at the border.

    source: H×(W·pixel) bytes, out: h×(w·pixel) bytes, pixel: bytes of one pixel. Nothing is checked here.
    """
    height, width = out.shape[0], out.shape[1]
    side, stride = d * pixel, source.shape[1]
    columns = (width + side - 1) // side
    for patch in range(tops.size):
        y0, x0 = patch // columns * d, patch % columns * side
        n = min(side, width - x0)
        start = source.ctypes.data + tops[patch] * stride + lefts[patch] * pixel
        target = out.ctypes.data + y0 * width + x0
        for y in range(min(d, height - y0)):
            _copy(target + y * width, start + y * stride, n)


@njit(cache=True, nogil=True)
def tile_turned(
    source: Bytes,
    pixel: int,
    d: int,
    tops: Ints,
    lefts: Ints,
    turns: Ints,
    vflips: Ints,
    hflips: Ints,
    out: Bytes,
) -> None:
    """The same with every patch turned by 90° · turns (counter-clockwise), then flipped up-down, left-right."""
    height, width = out.shape[0], out.shape[1] // pixel
    columns = (width + d - 1) // d
    stride = source.shape[1]
    flat, to = source.reshape(-1), out.reshape(-1)
    for patch in range(tops.size):
        y0, x0 = patch // columns * d, patch % columns * d
        start, down, right = _walk(stride, pixel, d, turns[patch], vflips[patch], hflips[patch])
        start += tops[patch] * stride + lefts[patch] * pixel
        n = min(d, width - x0)
        for y in range(min(d, height - y0)):
            at, put = start + y * down, ((y0 + y) * width + x0) * pixel
            if right == pixel:
                _copy(out.ctypes.data + put, source.ctypes.data + at, n * pixel)
            elif pixel == 3:
                for x in range(n):
                    to[put + 3 * x] = flat[at + x * right]
                    to[put + 3 * x + 1] = flat[at + x * right + 1]
                    to[put + 3 * x + 2] = flat[at + x * right + 2]
            else:
                for x in range(n):
                    for b in range(pixel):
                        to[put + x * pixel + b] = flat[at + x * right + b]


@njit(cache=True, nogil=True)
def _walk(stride: int, pixel: int, d: int, turns: int, vflip: int, hflip: int) -> tuple[int, int, int]:
    """Where in a patch the turned patch starts, and its steps down and right, in bytes."""
    last = d - 1
    if turns == 0:
        start, down, right = 0, stride, pixel
    elif turns == 1:
        start, down, right = last * pixel, -pixel, stride
    elif turns == 2:
        start, down, right = last * (stride + pixel), -stride, -pixel
    else:
        start, down, right = last * stride, pixel, -stride
    if vflip:
        start, down = start + last * down, -down
    if hflip:
        start, right = start + last * right, -right
    return start, down, right
