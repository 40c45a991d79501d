"""Compiled bilinear reading of whole pixels: the channels are lanes of one vector, one multiplication moves all.

Four channels of 16 bits (8 for the value, 8 for the weight) or of 32 (8 + 10 + 10 bits). Images of more channels are
read in groups of four. The vectors are written in the compiler's own language: by itself it would take words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numpy.typing import NDArray

from cuewise.cues.exp2_kernel import intrinsic
from cuewise.cues.vector_ir import load, splat, store

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Shorts = NDArray[np.uint16]

U = np.uint64  # unsigned indices spare numba's check for negative ones
BLOCK = 16  # lanes of 16 bits
_I8, _I16, _I32 = ir.IntType(8), ir.IntType(16), ir.IntType(32)


def _constant(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


@intrinsic
def between_rows(typing: Any, upper: Any, lower: Any, part: Any, target: Any, blocks: Any) -> Any:
    """target ← (upper·(256 − part) + lower·part + 128) / 256, in blocks of 16 lanes of 16 bits; addresses."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        upper, lower, part, target, blocks = args
        kind = ir.VectorType(_I16, BLOCK)
        b = splat(builder, builder.trunc(part, _I16), BLOCK)
        a = builder.sub(_constant(kind, 256), b)
        with cgutils.for_range(builder, blocks, intp=upper.type) as loop:
            x = builder.mul(loop.index, upper.type(2 * BLOCK))
            one, two = (load(builder, builder.add(p, x), kind) for p in (upper, lower))
            total = builder.add(builder.add(builder.mul(one, a), builder.mul(two, b)), _constant(kind, 128))
            store(builder, builder.lshr(total, _constant(kind, 8)), builder.add(target, x))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), code


@intrinsic
def between_columns(typing: Any, line: Any, columns: Any, parts: Any, target: Any, count: Any) -> Any:
    """target[x] ← Σ of pixels columns[x] and the next of `line`, weighed by parts[x] (8 lanes), / 32; addresses."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line, columns, parts, target, count = args
        word, pair = line.type, ir.VectorType(_I16, 8)
        with cgutils.for_range(builder, count, intp=word) as loop:
            x = builder.mul(loop.index, word(8))
            column = builder.load(builder.inttoptr(builder.add(columns, x), word.as_pointer()))
            pixels = load(builder, builder.add(line, builder.mul(column, word(8))), pair)
            weights = load(builder, builder.add(parts, builder.add(x, x)), pair)
            product = builder.mul(pixels, weights)
            left, right = (
                builder.shuffle_vector(
                    product, product, ir.Constant(ir.VectorType(_I32, 4), list(range(k, k + 4)))
                )
                for k in (0, 4)
            )
            total = builder.add(left, right)
            store(builder, builder.lshr(total, _constant(total.type, 5)), builder.add(target, x))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), code


@intrinsic
def mixed(typing: Any, p: Any, q: Any, r: Any, s: Any, wp: Any, wq: Any, wr: Any, ws: Any) -> Any:
    """The mean of four pixels of four bytes, each a uint32, with weights in 2^−20, as such a pixel."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide, narrow = ir.VectorType(_I32, 4), ir.VectorType(_I8, 4)
        products = [
            builder.mul(builder.zext(builder.bitcast(pixel, narrow), wide), splat(builder, weight, 4))
            for pixel, weight in zip(args[:4], args[4:])
        ]
        total = builder.add(builder.add(products[0], products[1]), builder.add(products[2], products[3]))
        return builder.bitcast(builder.trunc(builder.lshr(total, _constant(wide, 20)), narrow), _I32)

    return types.uint32(*[types.uint32] * 8), code


def four_lanes(image: Bytes) -> Words:
    """H×W×C to G×H×W words of four 16-bit lanes."""
    return np.asarray(_fours(image, np.uint16).view(np.uint64)[..., 0])


def four_bytes(image: Bytes) -> NDArray[np.uint32]:
    """H×W×C to G×H·W words of four bytes."""
    words = _fours(image, np.uint8).view(np.uint32)
    return np.asarray(words.reshape(len(words), -1))


def _fours(image: Bytes, kind: Any) -> NDArray[Any]:
    """The channels in groups of four, G×H×W×4, filled up with zeros."""
    height, width, channels = image.shape
    lanes = np.zeros((-(-channels // 4), height, width, 4), kind)
    for g in range(len(lanes)):
        part = image[:, :, 4 * g : 4 * g + 4]
        lanes[g, :, :, : part.shape[2]] = part
    return lanes


@njit(cache=True, nogil=True)
def sums_of_zooms(
    words: Words, rows: Any, row_parts: Any, columns: Any, column_parts: Shorts, members: Any, out: Bytes
) -> None:
    """out[s] = mean of the image and of its zooms, each as often as it is a member of sum s. words H×W, out S×H×W×C.

    Zoom z reads row rows[z, y] and the next, and so on: rows, row_parts Z×H, columns Z×W; parts in 256ths;
    column_parts Z×W×8: of both columns, for four lanes each; members Z×S: how often a zoom counts. At most 31 zooms a
    sum fit into a lane.
    """
    height, width = words.shape
    sums, channels = members.shape[1], out.shape[3]
    three = np.uint64(3)
    blocks = (4 * width + BLOCK - 1) // BLOCK
    last = np.zeros(width + BLOCK, np.uint64)  # the last row: what is read beyond it must be ours
    last[:width] = words[height - 1]
    line = np.zeros(width + BLOCK, np.uint64)
    zoomed = np.zeros(width, np.uint64)
    totals = np.zeros((sums, width), np.uint64)
    lanes = totals.view(np.uint16)
    weights = np.zeros(sums, np.float32)
    for s in range(sums):
        weights[s] = 1.0 / (8.0 * (members[:, s].sum() + 1.0))
    first = np.int64(words.ctypes.data)
    for y in range(height):
        at_last = np.int64(last.ctypes.data)  # in the loop: numba frees what it does not see used
        for s in range(sums):
            totals[s] = words[y] << three
        for z in range(rows.shape[0]):
            row = rows[z, y]
            upper = first + 8 * width * row if row < height - 1 else at_last
            lower = first + 8 * width * (row + 1) if row < height - 2 else at_last
            between_rows(upper, lower, row_parts[z, y], line.ctypes.data, blocks)
            between_columns(
                line.ctypes.data,
                columns[z].ctypes.data,
                column_parts[z].ctypes.data,
                zoomed.ctypes.data,
                width,
            )
            for s in range(sums):
                times, total = members[z, s], totals[s]
                if times == 1:
                    for x in range(U(width)):
                        total[x] += zoomed[x]
                elif times > 0:
                    for x in range(U(width)):
                        total[x] += zoomed[x] * times
        for s in range(sums):
            values, weight, shown = lanes[s], weights[s], out[s, y]
            if channels == 3:
                for x in range(U(width)):
                    k = U(4) * x
                    shown[x, 0] = np.uint8(np.float32(values[k]) * weight + np.float32(1e-2))
                    shown[x, 1] = np.uint8(np.float32(values[k + U(1)]) * weight + np.float32(1e-2))
                    shown[x, 2] = np.uint8(np.float32(values[k + U(2)]) * weight + np.float32(1e-2))
            else:
                for x in range(width):
                    for c in range(channels):
                        shown[x, c] = np.uint8(np.float32(values[4 * x + c]) * weight + np.float32(1e-2))


@njit(cache=True, nogil=True, inline="always")
def _mirror(i: Any, n: Any) -> Any:
    """Index i of a row of n continued as d c b a | a b c d | d c b a."""
    i = i % (2 * n)
    return i if i < n else 2 * n - 1 - i


@njit(cache=True, nogil=True)
def displace(words: NDArray[np.uint32], moves: NDArray[np.float32], gain: Any, out: Bytes) -> None:
    """Bilinear reading at (y, x) + gain · moves[y, x] (right, down), mirrored at the borders; weights in 1024ths.

    words H·W (four bytes each), moves H×W×2, out H×W×C with C ≤ 4.
    """
    height, width, channels = out.shape
    fine, byte = gain * np.float32(1024.0), np.uint32(255)
    away = 4096  # pixels added while the sum becomes an integer, so that cutting the fraction rounds down
    start = np.float32(away * 1024 + 0.5)
    for y in range(height):
        there, shown = moves[y].reshape(-1), out[y]
        for x in range(U(width)):
            u = np.int32(there[U(2) * x] * fine + start) - np.int32((away - np.int32(x)) * 1024)
            v = np.int32(there[U(2) * x + U(1)] * fine + start) - np.int32((away - y) * 1024)
            left, top, a, b = u >> 10, v >> 10, u & 1023, v & 1023
            right, low = left + 1, top + 1
            if top < 0 or left < 0 or low >= height or right >= width:
                top, low = _mirror(top, height), _mirror(low, height)
                left, right = _mirror(left, width), _mirror(right, width)
            upper, lower = top * width, low * width
            value = mixed(
                words[U(upper + left)],
                words[U(upper + right)],
                words[U(lower + left)],
                words[U(lower + right)],
                np.uint32((1024 - a) * (1024 - b)),
                np.uint32(a * (1024 - b)),
                np.uint32((1024 - a) * b),
                np.uint32(a * b),
            )
            shown[x, 0] = np.uint8(value & byte)
            if channels > 1:
                shown[x, 1] = np.uint8((value >> np.uint32(8)) & byte)
            if channels > 2:
                shown[x, 2] = np.uint8((value >> np.uint32(16)) & byte)
            if channels > 3:
                shown[x, 3] = np.uint8(value >> np.uint32(24))
