"""Colour jitter, greyscale and solarising with Pillow's arithmetic, to the bit, on rows of RGB bytes.

Single precision gives Pillow's bytes wherever Pillow itself works in double: the hue was checked on all 2^24
colours, and the tests repeat that. Rows are short enough to stay in the first cache over several operations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuewise.kernels import kernel, part

Row = NDArray[np.uint8]  # 3·W bytes
f32 = np.float32

BRIGHTNESS, CONTRAST, SATURATION, HUE = OPERATIONS = (1, 2, 3, 4)


@part
def _byte(x: f32) -> np.uint8:
    """Cut to 0..255 and drop the fraction."""
    return np.uint8(min(max(x, f32(0)), f32(255)))


@part
def _luma(r: np.uint8, g: np.uint8, b: np.uint8) -> np.uint32:
    weighed = np.uint32(19595) * r + np.uint32(38470) * g + np.uint32(7471) * b
    return np.uint32((weighed + np.uint32(32768)) >> np.uint32(16))


@part
def luma_sum(row: Row) -> np.uint32:
    """Σ of the grey values of a row."""
    total = np.uint32(0)
    for i in range(row.size // 3):
        total = np.uint32(total + _luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]))
    return total


@part
def blend(row: Row, flat: f32, factor: f32) -> None:
    """flat + factor · (value - flat): brightness with flat = 0, contrast with the mean grey."""
    for i in range(row.size):
        row[i] = _byte(flat + factor * (f32(row[i]) - flat))


@part
def saturate(row: Row, factor: f32) -> None:
    """grey + factor · (value - grey), the grey of each pixel."""
    for i in range(row.size // 3):
        r, g, b = row[3 * i], row[3 * i + 1], row[3 * i + 2]
        grey = f32(np.uint8(_luma(r, g, b)))
        row[3 * i] = _byte(grey + factor * (f32(r) - grey))
        row[3 * i + 1] = _byte(grey + factor * (f32(g) - grey))
        row[3 * i + 2] = _byte(grey + factor * (f32(b) - grey))


@part
def _channel(value: f32, chroma: f32, hue: f32, offset: f32) -> np.uint8:
    """One channel from hue in 1/1530 turns: value less chroma times a trapezium of the hue.

    Pillow's p, q and t are the same numbers; a tie cannot occur, since 65025 = 255² is odd.
    """
    a = hue + offset
    a = a - f32(1530) if a >= f32(1530) else a
    weight = max(f32(0), min(min(a, f32(1020) - a), f32(255)))
    return np.uint8(value - np.floor(chroma * weight * f32(1 / 65025) + f32(0.5)))


@kernel
def turn_hue(row: Row, shift: int) -> None:
    """To 8-bit HSV, hue + shift modulo 256, and back; shift in 0..255."""
    for i in range(row.size // 3):
        r, g, b = f32(row[3 * i]), f32(row[3 * i + 1]), f32(row[3 * i + 2])
        high, low = max(r, max(g, b)), min(r, min(g, b))
        middle = r + g + b - high - low
        fraction = (high - middle) / max(high - low, f32(1))
        is_r, is_g = r == high, g == high
        first_low = b <= g if is_r else (b <= r if is_g else r <= g)
        base = f32(0) if is_r else (f32(2) if is_g else f32(4))
        base = base + (f32(1) if first_low == is_r else f32(-1))
        sixths = base + fraction if first_low != is_r else base - fraction
        turn = sixths / f32(6)
        turn = turn + f32(1) if turn < f32(0) else turn
        hue = np.floor(turn * f32(255)) + f32(shift)
        hue = hue - f32(256) if hue >= f32(256) else hue
        saturation = np.floor((high - low) * f32(255) / max(high, f32(1)))
        chroma = high * saturation
        row[3 * i] = _channel(high, chroma, hue * f32(6), f32(1275))
        row[3 * i + 1] = _channel(high, chroma, hue * f32(6), f32(765))
        row[3 * i + 2] = _channel(high, chroma, hue * f32(6), f32(255))


@part
def to_gray(row: Row) -> None:
    """Three equal channels of Pillow's L."""
    for i in range(row.size // 3):
        grey = np.uint8(_luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]))
        row[3 * i] = row[3 * i + 1] = row[3 * i + 2] = grey


@kernel
def solarize(values: NDArray[np.uint8], threshold: int) -> None:
    """Invert the values from `threshold` on; 256 inverts none."""
    limit = np.uint32(max(0, min(256, threshold)))
    for i in range(values.size):
        values[i] = np.uint8(255 - values[i]) if np.uint32(values[i]) >= limit else values[i]


@kernel
def color(
    rows: NDArray[np.uint8],
    order: tuple[int, int, int, int],
    factors: tuple[f32, f32, f32],
    shift: int,
    gray: bool,
) -> None:
    """Colour jitter in the given order (0: nothing more), then greyscale; in place on H×3W bytes."""
    cut = 4  # where the contrast stands: it needs the mean grey of all that came before
    for k in range(4):
        if order[k] == CONTRAST:
            cut = k
    total = 0
    for y in range(rows.shape[0]):
        for k in range(cut):
            _operate(rows[y], order[k], factors, shift)
        if cut < 4:
            total += int(luma_sum(rows[y]))
        elif gray:
            to_gray(rows[y])
    if cut == 4:
        return
    mean = f32(int(total / (rows.size // 3) + 0.5))
    for y in range(rows.shape[0]):
        blend(rows[y], mean, factors[1])
        for k in range(cut + 1, 4):
            _operate(rows[y], order[k], factors, shift)
        if gray:
            to_gray(rows[y])


@part
def _operate(row: Row, operation: int, factors: tuple[f32, f32, f32], shift: int) -> None:
    if operation == BRIGHTNESS:
        blend(row, f32(0), factors[0])
    elif operation == SATURATION:
        saturate(row, factors[2])
    elif operation == HUE:
        turn_hue(row, shift)
