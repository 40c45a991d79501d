"""Spatter: drops of water or mud on the lens (one of the four extra corruptions)."""

from __future__ import annotations

import cv2
import numpy as np

from cuewise.cues.corruptions.source import Bytes, CorruptionInput, Floats
from cuewise.cues.corruptions.taps import gaussian_taps
from cuewise.cues.corruptions.weather import LUMA

SPATTER = (  # mean, σ, blur, threshold, strength or second blur, mud
    (0.65, 0.3, 4, 0.69, 0.6, False),
    (0.65, 0.3, 3, 0.68, 0.6, False),
    (0.65, 0.3, 2, 0.68, 0.5, False),
    (0.65, 0.3, 1, 0.65, 1.5, True),
    (0.67, 0.4, 1, 0.65, 1.5, True),
)
WATER, MUD = (175.0, 238.0, 238.0), (63.0, 42.0, 20.0)


def _blur(field: Floats, sigma: float, scale: float) -> Floats:
    taps = gaussian_taps(sigma, scale)
    out = cv2.sepFilter2D(field, cv2.CV_32F, taps, taps, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(out, dtype=np.float32)


def spatter(source: CorruptionInput, severity: int, rng: np.random.Generator) -> Bytes:
    mean, sigma = SPATTER[severity - 1][:2]
    field = rng.standard_normal((source.height, source.width), dtype=np.float32)
    return spatter_of(source, severity, field * np.float32(sigma) + np.float32(mean))


def spatter_of(source: CorruptionInput, severity: int, field: Floats) -> Bytes:
    """Drops of water (severities 1 to 3) or mud (4, 5) where the blurred field is high."""
    _, _, blur, threshold, strength, mud = SPATTER[severity - 1]
    liquid = _blur(field, blur, source.scale)
    if source.scale != 1.0:  # a narrower blur leaves more variance: keep the reference's, so as many drops
        left = [float((gaussian_taps(blur, s) ** 2).sum()) for s in (source.scale, 1.0)]
        mean = SPATTER[severity - 1][0]
        liquid = (liquid - np.float32(mean)) * np.float32(left[1] / left[0]) + np.float32(mean)
    liquid[liquid < threshold] = 0
    if mud:
        cover = _blur((liquid > threshold).astype(np.float32), strength, source.scale)
        cover[cover < 0.8] = 0
        veil = np.minimum(cover, 1.0)[:, :, None]
        values = source.image * (1 - veil) + veil * _colour(MUD, source)
    else:
        values = source.image + _drops(liquid, strength)[:, :, None] * _colour(WATER, source)
    return np.clip(values + 1e-3, 0, 255).astype(np.uint8)


def _colour(rgb: tuple[float, ...], source: CorruptionInput) -> Floats:
    if source.is_rgb:
        return np.array(rgb, np.float32)
    return np.full(source.channels, float(np.dot(rgb, LUMA)), np.float32)


def _drops(liquid: Floats, strength: float) -> Floats:
    """H×W, 0..strength: drops lit from one side, from the distance to their edges."""
    level = np.clip(liquid * 255, 0, 255).astype(np.uint8)
    edges = 255 - cv2.Canny(level, 50, 150)
    distance = np.minimum(cv2.distanceTransform(edges, cv2.DIST_L2, 5), 20)
    soft = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    relief = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    light = cv2.blur(cv2.filter2D(soft, cv2.CV_8U, relief), (3, 3)).astype(np.float32)
    drops = level * light
    return np.asarray(drops * (strength / max(float(drops.max()), 1e-12)), dtype=np.float32)
