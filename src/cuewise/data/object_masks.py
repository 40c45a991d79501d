"""Where the object of each image is: masks of another set under the same names, the set's own masks, or its boxes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.annotations.annotated import measured_size, stem
from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image
from cuewise.data.masks import check_fit, mask_values
from cuewise.data.relabelled import Relabelled
from cuewise.data.sample import Facts, Mask
from cuewise.data.source import Unannotated, one_source
from cuewise.errors import UserError

Outline = NDArray[np.bool_]  # H×W: what belongs to the object
WHITE = 128
LOOKED_AT = 8  # masks whose values are checked before any work


class ObjectMasks(Unannotated):
    """A source of masks, white on black, of the images of `data` in their order and under their names.

    given  a set of masks named as the images: white where the object is, or `value`; or a set with annotated objects
    value  the object's pixels in a mask [white in given masks; every class but 0 and 255 in the set's own]

    An image without a mask, or with one of another size, is a broken one here.
    """

    labels = None
    classes: tuple[str, ...] = ()

    def __init__(self, data: Dataset, given: Dataset | None = None, value: int | None = None) -> None:
        self.data, self.given, self.value = data, given, value
        self.columns: dict[str, NDArray[Any]] = {}
        at = {} if given is None else {stem(given.name(i)): i for i in range(len(given))}
        self.rows = None if given is None else [at.get(stem(data.name(i)), -1) for i in range(len(data))]

    def __len__(self) -> int:
        return len(self.data)

    def name(self, i: int) -> str:
        return self.data.name(i)

    def read(self, i: int) -> bytes | None:
        return None

    def image(self, i: int) -> Image:
        """H×W×3: 255 where the object is, else 0."""
        found = self.outline(i)
        if found is None:
            raise BrokenImage(self.name(i), "has no mask and no box")
        return np.repeat(np.where(found, np.uint8(255), np.uint8(0))[..., None], 3, axis=2)

    def outline(self, i: int) -> Outline | None:
        """What belongs to the object; None where that is not known. Raises BrokenImage."""
        if self.rows is None or self.given is None:
            source, row = self.data.locate(i)
            drawn = getattr(source, "outline", None)
            return self._annotated(self.data.facts(i), i) if drawn is None else drawn(row)
        row = self.rows[i]
        if row < 0:
            return None
        if self.given.object_classes:
            return self._annotated(self.given.facts(row), i)
        mask = mask_values(self.given, row)
        return self._fitting(mask >= WHITE if self.value is None else mask == self.value, i)

    def _annotated(self, facts: Facts, i: int) -> Outline | None:
        """The mask, or the boxes of all objects together."""
        mask = facts.mask
        if mask is not None:
            inside = (mask > 0) & (mask < 255) if self.value is None else mask == self.value
            return self._fitting(inside, i)
        if facts.boxes is None or not len(facts.boxes):
            return None
        out = np.zeros(self._size(i), bool)
        for left, top, right, bottom in np.rint(facts.boxes.corners).astype(int).tolist():
            out[top:bottom, left:right] = True
        return out

    def _fitting(self, outline: Outline, i: int) -> Outline:
        check_fit(outline, self._size(i), self.name(i))
        return outline

    def _size(self, i: int) -> tuple[int, int]:
        """Height and width of the image, from its header where it has one."""
        data = self.data.read(i)
        if data is None:
            height, width = self.data.image(i).shape[:2]
        else:
            width, height = measured_size(data, self.name(i))
        return height, width

    @property
    def how(self) -> str:
        """In words, for protocols."""
        if self.given is not None and not self.given.object_classes:
            return "masks given"
        return "objects as annotated"

    def fingerprint(self) -> dict[str, Any]:
        return one_source(
            "masks", "masks", len(self), hashlib.sha256(self.content_key().encode()).hexdigest()
        )

    def content_key(self) -> str:
        """Of the images and of the masks."""
        hashes = [str(d.fingerprint()["hash"]) for d in (self.data, self.given) if d is not None]
        return " ".join(["object masks", *hashes, str(self.value)])


class WithMasks(Relabelled):
    """A set whose images know their masks: 1 where the object is, 0 elsewhere; None where that is not known."""

    def __init__(self, data: Dataset, masks: ObjectMasks) -> None:
        super().__init__(data, data.labels, data.classes)
        self.masks = masks

    def facts(self, i: int) -> Facts:
        return replace(self.data.facts(i), masked=partial(self.mask, i))

    def mask(self, i: int) -> Mask | None:
        outline = self.masks.outline(i)
        return None if outline is None else outline.astype(np.uint8)


def object_masks(
    data: Dataset, given: Dataset | None, value: int | None, spec: str, name: str, how: str = "--mask-value N"
) -> ObjectMasks:
    """The masks of a set; masks that match none of its images, or in which nothing is an object, are refused.

    spec: the masks as the user typed them, option and all; name: that of the set; how: to give `value`
    """
    found = ObjectMasks(data, given, value)
    if given is None or found.rows is None:
        return found
    if not any(row >= 0 for row in found.rows):
        raise UserError(
            f"{spec}: none of its {len(given)} files is named as an image of {name} (one of those is {data.name(0)})"
        )
    if value is None and not given.object_classes:
        _check_values(found, given, spec, how)
    return found


def _check_values(found: ObjectMasks, given: Dataset, spec: str, how: str) -> None:
    """Index images have no white: the user must say which number is the object."""
    seen: set[int] = set()
    for row in [r for r in found.rows or () if r >= 0][:LOOKED_AT]:
        try:
            seen |= set(np.unique(mask_values(given, row)).tolist())
        except BrokenImage:
            continue
    if any(seen) and max(seen) < WHITE:
        values = ", ".join(map(str, sorted(seen)[:8]))
        raise UserError(
            f"{spec}: its masks have the values {values} and no white; say which one is the object: {how}"
        )
