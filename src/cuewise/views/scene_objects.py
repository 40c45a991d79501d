"""Regions of an object and of the scene around it (M82): what hyperbolic contrastive learning is shown.

S. Ge et al., "Hyperbolic Contrastive Learning for Visual Representations beyond Objects", CVPR 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cuewise.data import Dataset, Sample
from cuewise.views.object_crops import BoxSource, Corners
from cuewise.views.params import Region

MOST = 5  # boxes of a scene
_PICKS = 10  # uniform numbers per image beside the order of the boxes


@dataclass(frozen=True)
class SceneObjects:
    """Draws for each image an object and a scene: the union of 2 … min(5, n) boxes, the object's among them.

    The views are, in order: two of the object (random-resized crops of its region), the object and the scene as they are.

    smallest  boxes of fewer pixels than this squared are not used
    target    an object smaller than this squared is shown with some of what is around it, up to this many pixels per side
    """

    source: BoxSource
    smallest: float
    target: float

    def draw(self, sample: Sample, rng: np.random.Generator, views: int) -> tuple[Region | None, ...]:
        height, width = sample.image.shape[:2]
        u: list[float] = rng.random(_PICKS).tolist()
        # however many boxes there are, later draws stay where they were
        order_seed = int(rng.integers(2**63))
        found = large_enough(self.source.boxes(sample), self.smallest)
        if len(found) < 2:
            return (None,) * views
        rest = np.random.default_rng(order_seed).permutation(len(found))
        own = rest[0]
        count = 2 + int(u[0] * (min(MOST, len(found)) - 1))
        scene = whole(found[rest[:count]], height, width)
        region = widened(found[own], u[1:5], self.target, height, width)
        return region, region, whole(found[own : own + 1], height, width), scene


def large_enough(boxes: Corners, smallest: float) -> Corners:
    """The boxes of at least smallest² pixels."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return boxes[sides[:, 0] * sides[:, 1] >= smallest**2]


def whole(boxes: Corners, height: int, width: int) -> Region:
    """The smallest rectangle around all boxes, in whole pixels, shown as it is."""
    left, top = np.floor(boxes[:, :2].min(0)).astype(int)
    right, bottom = np.ceil(boxes[:, 2:].max(0)).astype(int)
    left, top = min(max(left, 0), width - 1), min(max(top, 0), height - 1)
    right, bottom = max(left + 1, min(right, width)), max(top + 1, min(bottom, height))
    return Region(int(top), int(left), int(bottom - top), int(right - left), whole=True)


def widened(box: Corners, u: list[float], target: float, height: int, width: int) -> Region:
    """The box, its sides grown by a random amount towards `target` where it has fewer than target² pixels."""
    region = whole(box[None], height, width)
    if region.height * region.width >= target**2:
        return Region(region.top, region.left, region.height, region.width)
    top, tall = _longer(region.top, region.height, height, target, u[0], u[1])
    left, wide = _longer(region.left, region.width, width, target, u[2], u[3])
    return Region(top, left, tall, wide)


def _longer(start: int, length: int, side: int, target: float, how: float, where: float) -> tuple[int, int]:
    """A longer interval that holds the old one and stays inside."""
    most = min(side, max(length, math.floor(target)))
    new = length + int(how * (most - length + 1))
    low, high = max(0, start + length - new), min(start, side - new)
    return low + int(where * (high - low + 1)), new


def with_scenes(data: Dataset, source: BoxSource, smallest: float) -> Dataset:
    """The images that have two boxes of a usable size; all of them where boxes are only known with the pixels."""
    known = [source.known(data, i) for i in range(len(data))]
    rows = [i for i, boxes in enumerate(known) if boxes is None or len(large_enough(boxes, smallest)) >= 2]
    return data if len(rows) == len(data) else data.select(rows)
