"""An object and its background apart: the hole filled, the object on another background, at another place, in another size.

What is removed is the box around each part of the object, so that no outline of it is left. The hole is filled by push–pull
interpolation (Gortler et al. 1996): a smooth continuation of what surrounds it, without any texture.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.forms import Pixels
from cuewise.errors import UserError

Mask = NDArray[np.bool_]
GREY = 128  # a background that is removed
PARTNERS = ("same", "other")  # backgrounds of another image: of the same class, of another one
BACKGROUNDS = (*PARTNERS, "removed", "only")


def hole_of(mask: Mask) -> Mask:
    """The boxes around the connected parts of a mask, one pixel in 32 wider on each side."""
    count, _, parts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    wide = max(1, min(mask.shape) // 32)
    out = np.zeros(mask.shape, bool)
    for left, top, width, height, _ in parts[1:count].tolist():
        out[max(0, top - wide) : top + height + wide, max(0, left - wide) : left + width + wide] = True
    return out


def fill_hole(image: Pixels, mask: Mask) -> Pixels:
    """The image without its object: the pixels of `hole_of` follow from those around it; H×W×3 uint8."""
    _check(image, mask)
    hole = hole_of(mask)
    if hole.all():
        return np.full_like(image, GREY)
    weight = (~hole).astype(np.float32)
    smooth = _pulled(image.astype(np.float32) * weight[..., None], weight)
    return np.where(hole[..., None], np.rint(smooth).clip(0, 255).astype(np.uint8), image)


def _pulled(known: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weighted means where there are any, those of the half as large image elsewhere."""
    height, width = weight.shape
    own = np.asarray(known / np.maximum(weight, np.float32(1e-6))[..., None], np.float32)
    if weight.min() >= 1 or max(height, width) == 1:
        return own
    size = (-(-width // 2), -(-height // 2))
    small = _pulled(_resized(known, size, cv2.INTER_AREA), _resized(weight, size, cv2.INTER_AREA))
    up = _resized(small, (width, height), cv2.INTER_LINEAR)
    share = np.minimum(weight, 1)[..., None]
    return np.asarray(share * own + (1 - share) * up, np.float32)


def _resized(array: NDArray[np.float32], size: tuple[int, int], way: int) -> NDArray[np.float32]:
    """size: width and height."""
    out = cv2.resize(array, size, interpolation=way)
    return np.asarray(out, np.float32).reshape(size[1], size[0], *array.shape[2:])


def change_background(
    image: Pixels, mask: Mask, kind: str, other: tuple[Pixels, Mask] | None = None
) -> Pixels:
    """The object stays unchanged in its place (`only`: it goes); H×W×3 uint8.

    kind   removed: flat grey; only: the own background with the hole filled; same, other: that of `other`, an image with
           its mask, resized to cover this one, its own object removed
    """
    _check(image, mask)
    if kind == "only":
        return fill_hole(image, mask)
    if kind == "removed":
        return np.where(mask[..., None], image, np.uint8(GREY))
    if other is None:
        raise ValueError(f"{kind} needs the image whose background is taken")
    return np.where(mask[..., None], image, _covering(fill_hole(*other), image.shape[:2]))


def _covering(image: Pixels, shape: tuple[int, ...]) -> Pixels:
    """The middle of the image, resized until it covers shape."""
    scale = max(shape[0] / image.shape[0], shape[1] / image.shape[1])
    if image.shape[:2] != shape:
        size = [max(n, round(side * scale)) for n, side in zip(shape, image.shape)]
        way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        image = np.asarray(cv2.resize(image, size[::-1], interpolation=way), np.uint8)
    top, left = ((side - n) // 2 for side, n in zip(image.shape, shape))
    return image[top : top + shape[0], left : left + shape[1]]


def object_at(image: Pixels, mask: Mask, place: tuple[float, float], share: float | None = None) -> Pixels:
    """The object moved within its own, filled background.

    place  (down, right), 0 to 1: at 0 the object touches the upper or left edge, at 1 the lower or right one
    share  its longer side relative to the image's shorter one [as it is]
    """
    _check(image, mask)
    out = fill_hole(image, mask)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return out
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    cut, alpha = image[box], mask[box].astype(np.float32)
    if share is not None:
        cut, alpha = _scaled(cut, alpha, share * min(image.shape[:2]) / max(alpha.shape), image.shape[:2])
    height, width = alpha.shape
    top, left = (round(p * (n - s)) for p, n, s in zip(place, image.shape, (height, width)))
    region = out[top : top + height, left : left + width]
    mixed = alpha[..., None] * cut + (1 - alpha[..., None]) * region
    region[:] = np.rint(mixed).astype(np.uint8)
    return out


def _scaled(
    cut: Pixels, alpha: NDArray[np.float32], scale: float, most: tuple[int, ...]
) -> tuple[Pixels, NDArray[np.float32]]:
    size = [max(1, min(limit, round(side * scale))) for side, limit in zip(alpha.shape, most)]
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    # colours weighted by the mask, so that none of the background comes along
    rgb = cv2.resize(cut * alpha[..., None], size[::-1], interpolation=way).reshape(*size, 3)
    soft = cv2.resize(alpha, size[::-1], interpolation=way).reshape(size)
    return np.asarray(rgb / np.maximum(soft, 1e-3)[..., None]), np.asarray(soft, np.float32)


def _check(image: Pixels, mask: Mask) -> None:
    if mask.shape != image.shape[:2]:
        raise UserError(f"the mask is {mask.shape} but the image is {image.shape[:2]}; resize the mask")
