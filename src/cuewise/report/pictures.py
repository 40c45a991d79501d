"""Pictures inside the page: read from anywhere, made small, written as data URIs within a budget."""

from __future__ import annotations

import base64
import hashlib
import io
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Picture = Path | str | bytes | np.ndarray[Any, Any]
BUDGET = 5_500_000  # bytes of encoded pictures; base64 makes 7.3 MB of them, the rest of 8 MB is for numbers
WIDE = 1.8  # longest side / shortest side of a strip
MOST_SIDE = 1400
_TIERS = ((1.0, 85), (0.7, 80), (0.5, 72), (0.35, 60))  # (scale of the longest side, JPEG quality)


@dataclass(frozen=True)
class PagePicture:
    """A picture as the page holds it; `key` is the same for equal sources."""

    uri: str
    width: int
    height: int
    key: str


@dataclass(frozen=True)
class PictureFile:
    """A picture to embed: where its path starts, its longest side, and the place on the page that shows it."""

    picture: Picture
    root: Path
    side: int
    place: Hashable


def embed_all(sources: Sequence[PictureFile], budget: int = BUDGET) -> list[PagePicture | None]:
    """Each source as data URI; equal pictures are encoded once, what cannot be read is None.

    When the sum over all places would exceed `budget` all are made smaller together; what still does not fit is left
    out from the end.
    """
    loaded = [_load(s.picture, s.root) for s in sources]
    images = dict(entry for entry in loaded if entry is not None)
    sides: dict[str, int] = {}
    places: dict[str, set[Hashable]] = {}
    for entry, source in zip(loaded, sources):
        if entry is not None:
            sides[entry[0]] = max(source.side, sides.get(entry[0], 0))
            places.setdefault(entry[0], set()).add(source.place)
    encoded: dict[str, tuple[bytes, str, int, int]] = {}
    for scale, quality in _TIERS:
        encoded = {k: _encode(im, max(24, int(sides[k] * scale)), quality) for k, im in images.items()}
        if sum(len(e[0]) * len(places[k]) for k, e in encoded.items()) <= budget:
            break
    kept: dict[str, PagePicture] = {}
    for key, (data, kind, width, height) in encoded.items():
        budget -= len(data) * len(places[key])
        if budget >= 0:
            uri = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
            kept[key] = PagePicture(uri, width, height, key)
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
    aspect = max(image.size) / max(1, min(image.size))
    if aspect > WIDE:  # strips are shown over several columns
        side = min(MOST_SIDE, int(0.6 * aspect * side))
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
