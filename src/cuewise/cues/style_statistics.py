"""Style without a network: colours by a linear map, texture by the statistics and the bands of a Laplacian pyramid.

Colours are moved by the map that turns the image's mean and covariance into the style's with the least change (the Monge map
of two Gaussians). Then band by band, fine to coarse: the image's band takes the style band's histogram (Heeger and Bergen,
"Pyramid-based texture analysis/synthesis", 1995) and gives way to the style's own band, much of it in the fine bands, none in
the coarse ones, so local texture is the style's and large structure stays the image's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.quilt_kernel import quilt

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

OWN = (0.8, 0.75, 0.6, 0.35)  # share of the style's own band at a pyramid's first levels, for 224 pixels
QUANTILES = 64


def _root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def colour_map(content: Floats, style: Floats) -> Floats:
    """content H×W×3 with the style's mean and covariance: μ_s + A (c − μ_c), A = C^-½ (C^½ S C^½)^½ C^-½."""
    flat, other = content.reshape(-1, 3).astype(np.float64), style.reshape(-1, 3).astype(np.float64)
    # 4: two grey levels of noise, so that flat images have a spread to map
    c, s = (np.cov(pixels.T) + 4.0 * np.eye(3) for pixels in (flat, other))
    root = _root(c)
    inverse = np.linalg.inv(root)
    a = inverse @ _root(root @ s @ root) @ inverse
    shift = other.mean(axis=0) - flat.mean(axis=0) @ a.T
    return np.asarray(content @ a.T.astype(np.float32) + shift.astype(np.float32), dtype=np.float32)


def pyramid(image: Floats, levels: int) -> list[Floats]:
    """Laplacian pyramid: `levels` bands, fine to coarse, and what is left; `collapse` undoes it exactly."""
    bands = []
    for _ in range(levels):
        small = cv2.pyrDown(image)
        bands.append(image - cv2.pyrUp(small, dstsize=(image.shape[1], image.shape[0])))
        image = np.asarray(small, dtype=np.float32)
    return [*bands, image]


def collapse(bands: list[Floats]) -> Floats:
    image = bands[-1]
    for band in bands[-2::-1]:
        image = band + cv2.pyrUp(image, dstsize=(band.shape[1], band.shape[0]))
    return image


def levels_for(height: int, width: int) -> int:
    """So many that the rest is about 4 pixels high."""
    return max(1, int(np.log2(min(height, width) / 4)))


def match_histogram(band: Floats, quantiles: Floats) -> Floats:
    """Each channel of the band with the given quantiles (Q×C), by a piecewise linear map."""
    thinned = band[:: max(1, band.shape[0] // 64), :: max(1, band.shape[1] // 64)]  # quantiles need no more
    own = band_quantiles(thinned)
    out = np.empty_like(band)
    for c in range(band.shape[2]):
        knots, index = np.unique(own[:, c], return_index=True)
        out[..., c] = np.interp(band[..., c], knots, quantiles[index, c])
    return out


def band_quantiles(band: Floats) -> Floats:
    """Q×C."""
    places = np.linspace(0, 1, QUANTILES)
    return np.asarray(np.quantile(band.reshape(-1, band.shape[2]), places, axis=0), dtype=np.float32)


class StyleBands:
    """What a style image gives to images of one size: its colours, its bands and their quantiles."""

    def __init__(self, style: Bytes, height: int, width: int) -> None:
        self.image: Floats = scrambled(cover(style, height, width).astype(np.float32))
        self.bands = pyramid(self.image, levels_for(height, width))
        self.quantiles = [band_quantiles(band) for band in self.bands[:-1]]


def scrambled(style: Floats) -> Floats:
    """The style quilted anew from its own blocks: the texture stays, the things it shows do not (always the same way)."""
    height, width = style.shape[:2]
    side = min(max(8, min(height, width) // 6), height, width)
    overlap = side // 3
    rows, columns = (len(range(0, max(n - overlap, 1), side - overlap)) for n in (height, width))
    rng = np.random.default_rng(0)
    numbers = rng.random((rows * columns, 24, 2), dtype=np.float32) * np.float32(1 - 1e-6)
    nothing = np.zeros((height, width), np.float32)
    return quilt(style, nothing, nothing, numbers, side, overlap, np.float32(0))


@lru_cache(maxsize=64)
def _bands_of(data: bytes, shape: tuple[int, int, int], height: int, width: int) -> StyleBands:
    return StyleBands(np.frombuffer(data, np.uint8).reshape(shape), height, width)


def cover(style: Bytes, height: int, width: int) -> Bytes:
    """The style resized, aspect kept, to cover H×W, its centre cut out."""
    tall, wide = style.shape[:2]
    factor = max(height / tall, width / wide)
    size = max(width, round(wide * factor)), max(height, round(tall * factor))
    mode = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    large = cv2.resize(style, size, interpolation=mode)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    return np.ascontiguousarray(large[top : top + height, left : left + width])


def transfer(image: Bytes, style: Bytes, strength: float) -> Bytes:
    """The image (H×W×3) in the style of another (h×w×3); strength 0 is the image itself, 1 the full style."""
    height, width = image.shape[:2]
    look = _bands_of(style.tobytes(), (style.shape[0], style.shape[1], 3), height, width)
    bands = pyramid(colour_map(image.astype(np.float32), look.image), len(look.quantiles))
    depth = max(1, round(np.log2(224 / min(height, width))) + 1) - 1  # small images lack the finest bands
    for level, quantiles in enumerate(look.quantiles):
        matched = match_histogram(bands[level], quantiles)
        own = OWN[level + depth] if level + depth < len(OWN) else 0.0
        bands[level] = matched + own * (look.bands[level] - matched)
    return mixed(image, collapse(bands), strength)


def mixed(image: Bytes, styled: NDArray[Any], strength: float) -> Bytes:
    """The image and its styled copy, H×W×3 both: `strength` of the copy, the rest of the image."""
    out = image + np.float32(strength) * (styled.astype(np.float32) - image)
    return np.clip(out + 0.5, 0, 255).astype(np.uint8)
