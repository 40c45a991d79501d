"""Object-aware crops: views of an image are taken from boxes of its objects, not from anywhere (M78).

S. Mishra et al., "Object-aware Cropping for Self-Supervised Learning", TMLR 2022. A box is drawn per image; the first view
is a crop of it, the others are crops of the dilated box, of the whole image, or of a box of the same size beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, Facts, Sample
from cuewise.errors import UserError
from cuewise.views.params import Region

Corners = NDArray[np.float32]  # n×4: left, top, right, bottom
MODES = ("dilate", "scene", "shift")
REFERENCES = ("image", "box", "coordinate")
SHIFT = 80.0  # pixels between the two boxes at 224 and above
TRIES = 10  # directions of a shift
DRAWS = 3 + TRIES  # uniform numbers per image: which box, swap, one spare, directions
LOOKED_AT = 512  # images from which the mean area of boxes is taken


class BoxSource(Protocol):
    """Where the boxes of an image come from; picklable."""

    def boxes(self, sample: Sample) -> Corners:
        """n×4 corners in pixels, n may be 0."""
        ...

    def known(self, data: Dataset, i: int) -> Corners | None:
        """The boxes of image i where they are known without its pixels, else None."""
        ...


@dataclass(frozen=True)
class GivenBoxes:
    """The annotated objects of the image, crowds left out."""

    def boxes(self, sample: Sample) -> Corners:
        return self.corners(sample.facts)

    def known(self, data: Dataset, i: int) -> Corners | None:
        return self.corners(data.facts(i))

    def corners(self, facts: Facts) -> Corners:
        found = facts.boxes
        if found is None:
            return np.zeros((0, 4), np.float32)
        crowd = found.flags.get("crowd")
        return found.corners if crowd is None else found.corners[~crowd]


@dataclass
class CropSettings:
    """--set crops.*"""

    mode: Annotated[str, "what the other view is a crop of: dilate, scene (the whole image) or shift"] = (
        "dilate"
    )
    boxes: Annotated[
        str | None, "proposals, given, or a table of `cuewise make boxes` [given where DATA has objects]"
    ] = None
    dilation: Annotated[float | None, "growth of the dilated box, as a share of `reference` [0.2]"] = None
    reference: Annotated[
        str | None,
        "what the dilation is a share of: image, box, or coordinate as in the released code [image]",
    ] = None
    radius: Annotated[
        float | None, "of mode shift: pixels between the boxes [80, less for images below 224 pixels]"
    ] = None
    minimum: Annotated[int | None, "smaller boxes are grown to this many pixels per side [the size]"] = None

    def check(self) -> None:
        """Values that have a meaning, and only with the mode that reads them."""
        for key, value, known in (
            ("mode", self.mode, MODES),
            ("reference", self.reference or "image", REFERENCES),
        ):
            if value not in known:
                raise UserError(f"crops.{key} {value}: {', '.join(known)}")
        for name, mode in (("dilation", "dilate"), ("reference", "dilate"), ("radius", "shift")):
            value = getattr(self, name)
            if value is not None and self.mode != mode:
                raise UserError(f"crops.{name} is for crops.mode={mode}, and the mode is {self.mode}")
        if self.dilation is not None and not 0 <= self.dilation <= 2:
            raise UserError(f"crops.dilation {self.dilation}: must be from 0 to 2")
        if self.radius is not None and self.radius <= 0:
            raise UserError(f"crops.radius {self.radius}: must be above 0")
        if self.minimum is not None and self.minimum < 1:
            raise UserError(f"crops.minimum {self.minimum}: must be 1 or more")


@dataclass(frozen=True)
class ObjectCrops:
    """The law of object-aware crops: from boxes and uniform numbers to the regions of two views.

    low   least share of the box that a crop of it has: s_min = min(1, low / mean relative area of the boxes)
    """

    source: BoxSource
    mode: str = "dilate"
    dilation: float = 0.2
    reference: str = "image"
    radius: float | None = None
    minimum: int = 224
    low: float = 0.2
    area: float = 0.0  # mean share of the image that a box covers

    def doubts(self) -> list[str]:
        """What makes these crops nothing else than random ones."""
        if self.area < 0.9:
            return []
        return [
            f"--crops object: boxes grown to {self.minimum} pixels cover {100 * self.area:.0f} % of the images, so the crops "
            f"are nearly random; set crops.minimum to less"
        ]

    def draw(self, sample: Sample, rng: np.random.Generator, views: int) -> tuple[Region | None, ...]:
        """The region of each view; None for views of the whole image. Always as many random numbers."""
        height, width = sample.image.shape[:2]
        u: list[float] = rng.random(DRAWS).tolist()
        found = self.source.boxes(sample)
        if not len(found):
            return (None,) * views
        box = grown(found[int(u[0] * len(found))], height, width, self.minimum)
        pair = self.pair(box, u[3:], height, width)
        if pair is None:
            return (None,) * views
        first, second = pair[::-1] if u[1] < 0.5 else pair
        return (first, *(second for _ in range(views - 1)))

    def pair(
        self, box: Region, u: list[float], height: int, width: int
    ) -> tuple[Region | None, Region | None] | None:
        """The regions of the object's view and of the other one; None where a shifted box fits nowhere."""
        own = replace(box, low=self.low)
        if self.mode == "scene":
            return replace(box, low=1.0, whole=True), None
        if self.mode == "dilate":
            return own, dilated(box, self.dilation, self.reference, height, width)
        radius = SHIFT * min(1.0, min(height, width) / 224) if self.radius is None else self.radius
        beside = shifted(box, radius, u, height, width)
        return None if beside is None else (own, Region(*beside, self.low))


def grown(corners: Corners, height: int, width: int, minimum: int) -> Region:
    """A box in whole pixels, grown around its centre to `minimum` per side (or the image's), then shifted inside."""
    left, top, right, bottom = (float(c) for c in corners)
    first, size = [], []
    for low, high, side in ((top, bottom, height), (left, right, width)):
        length = min(side, max(minimum, math.ceil(high) - math.floor(low), 1))
        start = round((low + high - length) / 2)
        first.append(min(max(start, 0), side - length))
        size.append(length)
    return Region(first[0], first[1], size[0], size[1])


def dilated(box: Region, share: float, reference: str, height: int, width: int) -> Region:
    """The box grown on each side by share/2 of the image's side (or of its own), cut to the image.

    "coordinate" multiplies the corners by 1 ∓ share, as the released code does: no growth at the left and top border.
    """
    top, left, bottom, right = box.top, box.left, box.top + box.height, box.left + box.width
    if reference == "coordinate":
        edges = top * (1 - share), left * (1 - share), bottom * (1 + share), right * (1 + share)
    else:
        sides = (height, width) if reference == "image" else (box.height, box.width)
        dy, dx = share / 2 * sides[0], share / 2 * sides[1]
        edges = top - dy, left - dx, bottom + dy, right + dx
    y0, x0 = max(0, round(edges[0])), max(0, round(edges[1]))
    y1, x1 = min(height, round(edges[2])), min(width, round(edges[3]))
    return Region(y0, x0, y1 - y0, x1 - x0)


def shifted(
    box: Region, radius: float, u: list[float], height: int, width: int
) -> tuple[int, int, int, int] | None:
    """A box of the same size whose corner lies `radius` away in the first direction in which it stays inside."""
    for number in u[:TRIES]:
        angle = 2 * math.pi * number
        top, left = box.top + round(radius * math.sin(angle)), box.left + round(radius * math.cos(angle))
        if 0 <= top <= height - box.height and 0 <= left <= width - box.width:
            return top, left, box.height, box.width
    return None


def mean_area(source: BoxSource, data: Dataset, minimum: int) -> tuple[float, float]:
    """Mean share of the image that a box covers after growth, and the share of images that have boxes; NaN without any."""
    step = max(1, len(data) // LOOKED_AT)
    shares, boxed, seen = [], 0, 0
    for i in range(0, len(data), step):
        try:
            sample = data[i]
        except Exception:  # a broken image is named when it is its turn
            continue
        height, width = sample.image.shape[:2]
        found = source.boxes(sample)
        seen, boxed = seen + 1, boxed + bool(len(found))
        for corners in found:
            box = grown(corners, height, width, minimum)
            shares.append(box.height * box.width / (height * width))
    return (float(np.mean(shares)) if shares else math.nan), boxed / max(1, seen)
