"""What is known of an image, as it is in a view of it: boxes and masks after crop, flip and rotation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuewise.data.sample import Boxes, Facts, Mask
from cuewise.views.params import ViewParams

SMALLEST = 1.0  # pixels per side below which a box is not seen in the view


def facts_in_view(facts: Facts, params: ViewParams, size: int, names: tuple[str, ...]) -> dict[str, object]:
    """The facts called `names` ("boxes", "mask") as they are in a size×size view; None where nothing is known."""
    found: dict[str, object] = {}
    if "boxes" in names:
        found["boxes"] = None if facts.boxes is None else boxes_in_view(facts.boxes, params, size)
    if "mask" in names:
        mask = facts.mask
        found["mask"] = None if mask is None else mask_in_view(mask, params, size)
    return found


def boxes_in_view(boxes: Boxes, params: ViewParams, size: int) -> Boxes:
    """Boxes in pixels of the size×size view, cut to it; those that it does not show are left out."""
    crop = params.crop
    scale = np.array([size / crop.width, size / crop.height] * 2, np.float32)
    origin = np.array([crop.left, crop.top] * 2, np.float32)
    corners = (boxes.corners - origin) * scale
    if params.flip:
        corners = np.stack([size - corners[:, 2], corners[:, 1], size - corners[:, 0], corners[:, 3]], 1)
    corners = np.clip(corners, 0, size)
    for _ in range(params.rotation // 90):  # counter-clockwise: (x, y) → (y, S − x)
        corners = np.stack([corners[:, 1], size - corners[:, 2], corners[:, 3], size - corners[:, 0]], 1)
    sides = corners[:, 2:] - corners[:, :2]
    seen = np.flatnonzero((sides >= SMALLEST).all(1))
    return Boxes(corners.astype(np.float32), boxes.classes, boxes.flags).select(seen)


def mask_in_view(mask: Mask, params: ViewParams, size: int) -> Mask:
    """The class of each pixel of the size×size view: that of the nearest pixel of the image, never a mixture."""
    crop = params.crop
    rows = crop.top + _nearest(crop.height, size)
    columns = crop.left + _nearest(crop.width, size)
    if params.flip:
        columns = columns[::-1]
    cut = mask[rows[:, None], columns[None, :]]
    return np.ascontiguousarray(np.rot90(cut, params.rotation // 90))


def _nearest(length: int, size: int) -> NDArray[np.int64]:
    """For each of `size` output pixels the input pixel that holds its centre."""
    return np.minimum(((np.arange(size) + 0.5) * length / size).astype(np.int64), length - 1)
