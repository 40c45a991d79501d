"""Photographs as JPEG bytes, and torchvision on Pillow as the reference that views must equal."""

from __future__ import annotations

import io

import numpy as np
import PIL
import torchvision.transforms.functional as F
from PIL import Image, ImageFilter

from cuewise.data import decode
from cuewise.views import Jitter, ViewParams

# Pillow 13 runs the vertical pass first where the height shrinks by more than twice what the width does
VERTICAL_FIRST = int(PIL.__version__.split(".")[0]) >= 13
TURNS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}


def jpeg(height: int, width: int, seed: int = 0) -> bytes:
    """Soft and hard edges, saturated colours, black, white and grain, as a JPEG file."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 256, (max(1, height // 23), max(1, width // 23), 3), dtype=np.uint8)
    soft = np.asarray(Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC), np.float64)
    hard = np.asarray(Image.fromarray(cells[::-1]).resize((width, height), Image.Resampling.NEAREST))
    mixed = (
        np.where(rng.random((1, width, 1)) < 0.3, hard, soft) * 1.3
        - 38
        + rng.normal(0, 9, (height, width, 1))
    )
    out = io.BytesIO()
    Image.fromarray(mixed.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=92)
    return out.getvalue()


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    return decode(jpeg(height, width, seed), "photo.jpg")


def jittered(picture: Image.Image, jitter: Jitter) -> Image.Image:
    for letter in jitter.order:
        if letter == "b":
            picture = F.adjust_brightness(picture, jitter.brightness)
        elif letter == "c":
            picture = F.adjust_contrast(picture, jitter.contrast)
        elif letter == "s":
            picture = F.adjust_saturation(picture, jitter.saturation)
        else:
            picture = F.adjust_hue(picture, jitter.hue)
    return picture


def reference(image: np.ndarray, params: ViewParams, size: int, flip_last: bool = False) -> np.ndarray:
    """The view by torchvision's functional transforms on Pillow images."""
    c = params.crop
    picture = F.resized_crop(Image.fromarray(image), c.top, c.left, c.height, c.width, [size, size])
    if params.flip and not flip_last:
        picture = F.hflip(picture)
    if params.jitter:
        picture = jittered(picture, params.jitter)
    if params.gray:
        picture = F.rgb_to_grayscale(picture, 3)
    if params.blur is not None:
        picture = picture.filter(ImageFilter.GaussianBlur(params.blur))
    if params.flip and flip_last:
        picture = F.hflip(picture)
    if params.solarize is not None:
        picture = F.solarize(picture, params.solarize)
    if params.rotation:
        picture = picture.transpose(TURNS[params.rotation])
    return np.asarray(picture)
