"""Images with the class of each pixel: a set's own masks, or index images of another set under the same names."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.annotations.annotated import read_mask, stem
from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image
from cuewise.data.part_of_set import PartOfSet
from cuewise.data.sample import Facts, Mask
from cuewise.errors import UserError


class Masked(PartOfSet):
    """A source of the images of `whole` that have a mask; `masks` holds index images (PNG) named as the images.

    A mask of another size than its image makes the image unusable: it is left out and listed like a broken one.
    """

    labels = None
    classes: tuple[str, ...] = ()

    @property
    def as_stored(self) -> bool:
        """No: an image must have the size of its mask."""
        return False

    def __init__(self, whole: Dataset, masks: Dataset | None = None, spec: str = "DATA") -> None:
        self.whole, self.masks = whole, masks
        self.object_classes = whole.object_classes
        self.columns: dict[str, NDArray[Any]] = {}
        at = {} if masks is None else {stem(masks.name(i)): i for i in range(len(masks))}
        self.mask_rows = np.array([at.get(stem(whole.name(i)), -1) for i in range(len(whole))], np.int64)
        own = masks is None and all(s.object_classes == whole.object_classes for s in whole.sources)
        has_mask = [self._own(i) for i in range(len(whole))] if own else self.mask_rows >= 0
        self.rows = np.flatnonzero(has_mask)
        self._last: tuple[int, Mask] | None = None
        if not len(self.rows):
            raise UserError(_no_masks(spec, whole, masks))

    def image(self, i: int) -> Image:
        pixels = super().image(i)
        check_fit(self.mask(i), pixels.shape[:2], self.name(i))
        return pixels

    def facts(self, i: int) -> Facts:
        return replace(super().facts(i), masked=partial(self.mask, i))

    def mask(self, i: int) -> Mask:
        """H×W values as they are stored; raises BrokenImage."""
        if self._last is None or self._last[0] != i:
            self._last = (i, self._read(int(self.rows[i])))
        return self._last[1]

    def fingerprint(self) -> dict[str, Any]:
        """That of the images that have a mask, and of the masks; images without one are listed."""
        found = self.whole.select(self.rows).fingerprint()
        own = "" if self.masks is None else str(self.masks.fingerprint()["hash"])
        digest = hashlib.sha256(f"{found['hash']} {own}".encode()).hexdigest()
        without = np.setdiff1d(np.arange(len(self.whole)), self.rows)
        missing = [{"path": self.whole.name(int(i)), "why": "without a mask"} for i in without]
        missing += [] if self.masks is None else self.masks.fingerprint()["skipped"]
        return {**found, "hash": digest, "skipped": [*found["skipped"], *missing]}

    def _own(self, i: int) -> bool:
        """Whether the set itself has a mask of image i."""
        try:
            return self.whole.facts(i).mask is not None
        except BrokenImage:
            return True  # it is there and cannot be read: listed when it is asked for

    def _read(self, row: int) -> Mask:
        if self.masks is None:
            mask = self.whole.facts(row).mask
            assert mask is not None
            return mask
        return mask_values(self.masks, int(self.mask_rows[row]))


def mask_values(masks: Dataset, row: int) -> Mask:
    """H×W as stored; raises BrokenImage."""
    data = masks.read(row)
    return masks.image(row)[..., 0] if data is None else read_mask(data, masks.name(row))


def check_fit(mask: NDArray[Any], size: tuple[int, ...], name: str) -> None:
    """BrokenImage where a mask has another size (height, width) than its image."""
    if mask.shape != size:
        sizes = [f"{w}×{h}" for h, w in (mask.shape, size)]
        raise BrokenImage(name, f"its mask has {sizes[0]} pixels, the image {sizes[1]}")


def _no_masks(spec: str, whole: Dataset, masks: Dataset | None) -> str:
    if masks is None:
        return (
            f"{spec} has no masks: give --masks DATA (index images named as the images), a set in VOC's layout with "
            "SegmentationClass, or a COCO file with polygons; sets of one --train must have the same classes"
        )
    return (
        f"--masks: no mask is named as an image of {spec}; the first image is {whole.name(0)!r}, the first mask "
        f"{masks.name(0)!r}: their names must be equal up to the ending"
    )
