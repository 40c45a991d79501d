"""Pictures inside the page: read from anywhere, made small, written as data URIs within a budget."""

from __future__ import annotations

import base64
import hashlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Picture = Path | str | bytes | np.ndarray[Any, Any]
BUDGET = 5_500_000  # bytes of encoded pictures; base64 makes 7.3 MB of them, the rest of 8 MB is for numbers
_TIERS = ((1.0, 85), (0.7, 80), (0.5, 72), (0.35, 60))  # (scale of the longest side, JPEG quality)


@dataclass(frozen=True)
class Embedded:
    """A picture as the page holds it; `key` tells equal sources apart from different ones."""

    uri: str
    width: int
    height: int
    key: str


def embed_all(pictures: Sequence[tuple[Picture, Path, int]], budget: int = BUDGET) -> list[Embedded | None]:
    """Each (picture, its folder, longest side) as data URI; the same source is encoded once, what cannot be read is None.

    When the sum would exceed `budget` all are made smaller together; what still does not fit is left out from the end.
    """
    loaded = [_load(picture, root) for picture, root, _ in pictures]
    sides: dict[str, int] = {}
    for entry, (_, _, side) in zip(loaded, pictures):
        if entry is not None:
            sides[entry[0]] = max(side, sides.get(entry[0], 0))
    images = dict(e for e in loaded if e is not None)
    encoded: dict[str, tuple[bytes, str, int, int]] = {}
    for scale, quality in _TIERS:
        encoded = {k: _encode(im, max(24, int(sides[k] * scale)), quality) for k, im in images.items()}
        if sum(len(e[0]) for e in encoded.values()) <= budget:
            break
    kept: dict[str, Embedded] = {}
    for key, (data, kind, width, height) in encoded.items():
        budget -= len(data)
        if budget >= 0:
            uri = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
            kept[key] = Embedded(uri, width, height, key)
    return [kept.get(e[0]) if e is not None else None for e in loaded]


def _load(picture: Picture, root: Path) -> tuple[str, Image.Image] | None:
    """(hash of the source, upright RGB image); a path must stay inside `root`, since documents come from elsewhere."""
    try:
        if isinstance(picture, np.ndarray):
            array = np.ascontiguousarray(picture)
            return hashlib.sha1(array.tobytes() + repr(array.shape).encode()).hexdigest(), _opaque(
                Image.fromarray(array)
            )
        if isinstance(picture, bytes):
            data = picture
        else:
            path = (root / picture).resolve()
            if isinstance(picture, str) and not path.is_relative_to(root.resolve()):
                return None
            data = path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
            image.load()
        return hashlib.sha1(data).hexdigest(), _opaque(image)
    except Exception:  # any decoder may raise anything on a broken file; the page shows a placeholder
        return None


def _opaque(image: Image.Image) -> Image.Image:
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


def _encode(image: Image.Image, side: int, quality: int) -> tuple[bytes, str, int, int]:
    """PNG where it is small anyway (drawings, tiny images), JPEG otherwise."""
    if max(image.size) > side:
        ratio = side / max(image.size)
        size = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    jpeg, png = io.BytesIO(), io.BytesIO()
    image.save(jpeg, "JPEG", quality=quality, optimize=True)
    if image.width * image.height <= 128 * 128:
        image.save(png, "PNG", optimize=True)
        if len(png.getvalue()) <= max(12_000, len(jpeg.getvalue())):
            return png.getvalue(), "png", image.width, image.height
    return jpeg.getvalue(), "jpeg", image.width, image.height
