"""Image bytes → upright uint8 RGB: libjpeg-turbo for ordinary JPEGs, Pillow for everything else."""

from __future__ import annotations

import io
import logging
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageOps

from cuewise.data.headers import JpegHeader, kind, missing_scans, read_jpeg_header

Image = NDArray[np.uint8]  # H×W×3, RGB, C-contiguous

MAX_PIXELS = 1 << 26  # of one image: decoding it takes at most 0.6 GB; CUEWISE_MAX_PIXELS allows more
STRIP = 1 << 20  # pixels converted at once
logging.getLogger("PIL").addHandler(logging.NullHandler())  # else its complaints reach the terminal


class BrokenImage(Exception):
    """An image that cannot be decoded: its name and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True)
class SmallestCrop:
    """The smallest crop that will be taken of an image: a square of a share of its area, shown with `side` pixels per side.

    narrow  the least short side of a crop over that of the image, where it is not the area that bounds the crop
    """

    side: int
    share: float
    narrow: float = 1.0

    def reduction(self, height: int, width: int) -> int:
        """By how much a JPEG can be reduced so that no crop has fewer pixels than it is shown with: 1, 2, 4 or 8."""
        crop = min(math.sqrt(self.share * height * width), self.narrow * min(height, width))
        return next((n for n in REDUCTIONS if crop >= n * self.side), 1)


REDUCTIONS = (8, 4, 2)  # of the side, which libjpeg makes of the transformed blocks, before there are pixels


def reduction(header: JpegHeader, crops: Sequence[SmallestCrop]) -> int:
    """By how much a JPEG is reduced so that all these crops keep their pixels.

    Half as much where colours are stored at half the resolution along one axis only (4:2:2): libjpeg reduces both axes
    alike, so that colours would be left with half the pixels of the view. With 4:2:0 it keeps them whole.
    """
    by = min((crop.reduction(header.height, header.width) for crop in crops), default=1)
    return max(1, by // 2) if header.uneven else by


def decode(data: bytes, name: str, crops: Sequence[SmallestCrop] = ()) -> Image:
    """H×W×3 pixels as a viewer shows them: first frame, EXIF-upright, transparency on white, 16 bit as 8.

    crops: a JPEG is reduced while it is decoded, as far as all of these allow.
    """
    if not data:
        raise BrokenImage(name, "empty file")
    if data[:3] == b"\xff\xd8\xff":
        header = read_jpeg_header(data)
        if header is not None and header.progressive and missing_scans(data, header):
            raise BrokenImage(name, "truncated (a progressive JPEG without its last scans)")
        if header is not None and header.plain:
            return _decode_jpeg(data, header, name, crops)
        if header is not None and header.components == 4:
            _check_four(data, header, name)
    return _decode_other(data, name)


def _decode_jpeg(data: bytes, header: JpegHeader, name: str, crops: Sequence[SmallestCrop]) -> Image:
    check_size(header.width, header.height, name)
    by = reduction(header, crops)
    try:
        pixels = simplejpeg.decode_jpeg(
            data,
            colorspace="RGB",
            fastdct=False,
            fastupsample=False,
            min_height=-(-header.height // by),
            min_width=-(-header.width // by),
            strict=True,
        )
    except ValueError as error:
        _refuse_damage(error, name)
        return _decode_other(data, name)
    return upright(pixels, header.orientation)


def _check_four(data: bytes, header: JpegHeader, name: str) -> None:
    """CMYK and YCCK are Pillow's to convert, but it stays silent where a closed file misses its lower part."""
    check_size(header.width, header.height, name)
    try:
        simplejpeg.decode_jpeg(data, colorspace="CMYK", strict=True)
    except ValueError as error:
        _refuse_damage(error, name)


def _refuse_damage(error: ValueError, name: str) -> None:
    """libjpeg fills what is missing with grey and only warns; its other warnings (stray bytes between segments,
    odd markers) leave the picture whole, and Pillow decides about those."""
    text = " ".join(str(error).split())
    if "remature end" in text or ("Corrupt JPEG data" in text and "xtraneous" not in text):
        raise BrokenImage(name, f"truncated or damaged ({text})") from None


def upright(pixels: Image, orientation: int) -> Image:
    """Undo the EXIF orientation 1…8; anything else is left as it is."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise BrokenImage(name, f"zero size ({width}×{height} pixels)")
    given = os.environ.get("CUEWISE_MAX_PIXELS", "")
    most = int(given) if given.isdigit() else MAX_PIXELS
    if width * height > most:
        why = f"{width}×{height} pixels are more than the {most} allowed"
        raise BrokenImage(name, f"{why}: make it smaller, or set CUEWISE_MAX_PIXELS")


def _decode_other(data: bytes, name: str) -> Image:
    warnings.filterwarnings("ignore", module=r"PIL\.")  # idempotent, and safe with threads
    try:
        with Pillow.open(io.BytesIO(data)) as image:
            check_size(*image.size, name)
            image.seek(0)
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
            return to_rgb(image, name)
    except (BrokenImage, MemoryError):
        raise
    except Exception as error:  # Pillow's readers raise whatever the damaged bytes lead them into
        what = "not an image" if kind(data[:32]) is None else "cannot be decoded"
        raise BrokenImage(name, f"{what} ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "BytesIO object" in text:  # an address in memory says nothing, and differs in every run
        text = "no known image format"
    return text or type(error).__name__


def to_rgb(image: Pillow.Image, name: str) -> Image:
    """Pillow image of any mode → RGB; 16 bit by the high byte, transparency composited on white."""
    width, height = image.size
    rows = max(1, STRIP // max(1, width))
    if rows >= height:
        return _to_rgb(image, name)
    out: Image = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        out[top : top + rows] = _to_rgb(strip, name)
    return out


def _to_rgb(image: Pillow.Image, name: str) -> Image:
    mode = image.mode
    if mode.startswith("I"):  # I;16, I;16B, …, and I, which Pillow uses for 16-bit PGM
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise BrokenImage(name, "32-bit pixels: save it with 8 or 16 bits per channel")
        return np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    if mode == "F":
        raise BrokenImage(name, "floating-point pixels: save it with 8 or 16 bits per channel")
    if mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return _on_white(np.asarray(image.convert("RGBA")))
    return np.ascontiguousarray(np.asarray(image if mode == "RGB" else image.convert("RGB")))


def _on_white(rgba: NDArray[np.uint8]) -> Image:
    alpha = rgba[:, :, 3:].astype(np.uint32)
    mixed = (rgba[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255
    return mixed.astype(np.uint8)
