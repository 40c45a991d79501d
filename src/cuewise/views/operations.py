"""From an image and drawn parameters to a view: uint8 in, uint8 size×size×3 out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from cuewise.views.params import Jitter, ViewParams

Pixels = NDArray[np.uint8]  # H×W×3, RGB


def apply(image: Pixels, params: ViewParams, size: int) -> Pixels:
    """The view of `image` that `params` describes, size×size×3."""
    c = params.crop
    picture = Image.fromarray(image[c.top : c.top + c.height, c.left : c.left + c.width])
    picture = picture.resize((size, size), Image.Resampling.BILINEAR)
    if params.flip:
        picture = ImageOps.mirror(picture)
    if params.jitter is not None:
        picture = _jitter(picture, params.jitter)
    if params.gray:
        picture = picture.convert("L").convert("RGB")
    if params.blur is not None:
        picture = picture.filter(ImageFilter.GaussianBlur(params.blur))
    if params.solarize is not None:
        picture = ImageOps.solarize(picture, params.solarize)
    return np.ascontiguousarray(np.rot90(np.asarray(picture), params.rotation // 90))


def _jitter(picture: Image.Image, jitter: Jitter) -> Image.Image:
    for letter in jitter.order:
        if letter == "b":
            picture = ImageEnhance.Brightness(picture).enhance(jitter.brightness)
        elif letter == "c":
            picture = ImageEnhance.Contrast(picture).enhance(jitter.contrast)
        elif letter == "s":
            picture = ImageEnhance.Color(picture).enhance(jitter.saturation)
        else:
            hsv = np.array(picture.convert("HSV"))
            hsv[..., 0] += np.uint8(int(jitter.hue * 255) % 256)
            picture = Image.fromarray(hsv, "HSV").convert("RGB")
    return picture


def center(image: Pixels, size: int) -> Pixels:
    """The evaluation view: short side to size·256/224, then the central size×size.

    An image whose short side is not larger than `size` is resized to `size` and loses no border: a set kept
    at the encoder's own size is seen whole.
    """
    height, width = image.shape[:2]
    short = round(size * 256 / 224) if min(height, width) > size else size
    h = short if height <= width else int(short * height / width)
    w = short if width <= height else int(short * width / height)
    picture = Image.fromarray(image).resize((w, h), Image.Resampling.BILINEAR)
    top, left = round((h - size) / 2), round((w - size) / 2)
    return np.ascontiguousarray(np.asarray(picture)[top : top + size, left : left + size])
