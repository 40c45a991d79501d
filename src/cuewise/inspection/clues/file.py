"""The file that an image came in: how many bytes, which format, how strongly it was compressed."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
from PIL import Image as Pillow

from cuewise.inspection.clue import Clue, Look, Numbers

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
MODES = ("RGB", "L", "P", "RGBA", "CMYK")


class FileClue(Clue):
    """Bytes, bytes per pixel, format, colour mode, JPEG's quantisation tables and its metadata."""

    name = "file"
    summary = "bytes, format, JPEG quality and metadata of the file"
    subject = "The file (bytes, format, JPEG quality)"
    needs = "files: generated images, and those stored as bare pixels, have none"

    def numbers(self, look: Look) -> Numbers | None:
        content = look.content()
        if content is None:
            return None
        height, width = look.sample.image.shape[:2]
        sizes = [math.log(len(content)), math.log(len(content) / (height * width))]
        return np.array([*sizes, *_header(content)], np.float32)


def _header(content: bytes) -> list[float]:
    """What the header says; zeros where it cannot be read by Pillow (the image itself could be)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Pillow.open(io.BytesIO(content))
    except Exception:
        return [0.0] * (len(FORMATS) + len(MODES) + 5)
    tables: dict[int, Any] = getattr(image, "quantization", None) or {}
    # fine steps mean a high quality; the first entry is that of the mean, the last that of the finest detail
    steps = [math.log(1 + float(np.mean(t))) for t in list(tables.values())[:2]]
    layers = getattr(image, "layer", None) or [(0, 0, 0)]
    known = [float(image.format == f) for f in FORMATS] + [float(image.mode == m) for m in MODES]
    more = [float("exif" in image.info), float("icc_profile" in image.info), float(layers[0][1])]
    return known + (steps + [0.0, 0.0])[:2] + more
