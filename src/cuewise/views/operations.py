"""From an image and drawn parameters to a view: uint8 in, uint8 size×size×3 out, equal to torchvision on Pillow."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.views import blur_kernel, color_kernel, resize_kernel, rotate_kernel
from cuewise.views.augmentations import apply_own
from cuewise.views.params import Jitter, ViewParams
from cuewise.views.styles import DRAWN, Styles
from cuewise.views.suppress import suppressed

Pixels = NDArray[np.uint8]  # H×W×3, RGB

_CODES = dict(zip("bcsh", color_kernel.OPERATIONS))
ORDERS: dict[str, Any] = {  # letters → four codes, 0 where there is no more
    "".join(letters): tuple(_CODES[c] for c in letters) + (0,) * (4 - n)
    for n in range(5)
    for letters in permutations("bcsh", n)
}
_NO_JITTER = Jitter(order="")
_kept = threading.local()  # scratch memory of this thread: fresh pages cost more than the work done in them


def apply(image: Pixels, params: ViewParams, size: int, styles: Styles = DRAWN) -> Pixels:
    """The view of `image` that `params` describes, size×size×3; `styles` says what a style number means."""
    image = _checked(image)
    if params.suppress:
        image = suppressed(image, params.suppress)
    crop = params.crop
    if not (
        0 <= crop.top <= crop.top + crop.height - 1 < image.shape[0]
        and 0 <= crop.left <= crop.left + crop.width - 1 < image.shape[1]
    ):
        raise UserError(
            f"{crop} reaches outside an image of {image.shape[1]}×{image.shape[0]}; draw it for that size"
        )
    out = np.empty((size, size, 3), np.uint8)
    rectangle = (crop.top, crop.left, crop.height, crop.width)
    length = resize_kernel.scratch_bytes(crop.height, crop.width, size, size)
    resize_kernel.resize(image, rectangle, (size, size), (0, 0), params.flip, _scratch(length), out)
    if params.style:
        out = styles.after_the_crop(out, params.style)
    if params.own:
        out = apply_own(out, params)
    rows = out.reshape(size, 3 * size)
    if params.jitter or params.gray:
        jitter = params.jitter or _NO_JITTER
        factors = (np.float32(jitter.brightness), np.float32(jitter.contrast), np.float32(jitter.saturation))
        color_kernel.color(rows, ORDERS[jitter.order], factors, hue_shift(jitter), params.gray)
    if params.blur:
        blur_kernel.blur(rows, params.blur, _scratch(blur_kernel.scratch_bytes(size, params.blur)))
    if params.solarize is not None:
        color_kernel.solarize(out.reshape(-1), params.solarize)
    return rotate_kernel.turned(out, params.rotation // 90) if params.rotation else out


def hue_shift(jitter: Jitter) -> int:
    """0 … 255: towards zero, then around the circle of 256 hues."""
    return int(jitter.hue * 255) % 256


def center(image: Pixels, size: int) -> Pixels:
    """The evaluation view: short side to size·256/224, then the central size×size.

    An image whose short side is not larger than `size` is resized to `size` and loses no border on that side:
    a set that is kept at the encoder's own size is seen whole.
    """
    image = _checked(image)
    height, width = image.shape[:2]
    short = round(size * 256 / 224) if min(height, width) > size else size
    h = short if height <= width else int(short * height / width)
    w = short if width <= height else int(short * width / height)
    window = round((h - size) / 2.0), round((w - size) / 2.0)
    out = np.empty((size, size, 3), np.uint8)
    length = resize_kernel.scratch_bytes(height, width, size, size)
    resize_kernel.resize(image, (0, 0, height, width), (h, w), window, False, _scratch(length), out)
    return out


def _checked(image: Pixels) -> Pixels:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise UserError(f"a view needs a uint8 image of height×width×3, not {image.dtype} {image.shape}")
    return np.ascontiguousarray(image)


def _scratch(length: int) -> Pixels:
    kept: Pixels | None = getattr(_kept, "bytes", None)
    if kept is None or kept.size < length:
        kept = _kept.bytes = np.empty(length, np.uint8)
    return kept
