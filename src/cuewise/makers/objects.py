"""Layouts of makers that take an object apart from its background: each image with its mask, and perhaps another image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cuewise.data import BrokenImage, Dataset, open_data
from cuewise.data.object_masks import ObjectMasks, object_masks
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker
from cuewise.makers.mirror import mirror

LOOKED_AT = 20  # images of which one must have an object


@dataclass(frozen=True)
class ObjectMaker(Maker):
    """Base of makers that take an object apart from its background."""

    second = "mask_source"
    masks: Annotated[str, "DATA: masks named as the images, white where the object is [what SRC knows]"] = ""
    value: Annotated[int, "the value of an object's pixels in a mask; −1: white"] = -1


def masks_for(kind: str, dataset: Dataset, masks: str, value: int) -> ObjectMasks:
    """Where the objects of SRC are; an error where nothing says so."""
    given = open_data(masks) if masks else None
    where = f"make {kind}: masks={masks}"
    found = object_masks(dataset, given, None if value < 0 else value, where, "SRC", "--set value=N")
    if masks or any(has_object(found, i) is not None for i in range(min(LOOKED_AT, len(found)))):
        return found
    raise UserError(
        f"make {kind}: SRC has no masks and no boxes: --set masks=DATA, named as the images, white where the object is"
    )


def has_object(masks: ObjectMasks, i: int) -> bool | None:
    """Whether image i has an object; None where nothing is known of it."""
    try:
        outline = masks.outline(i)
    except BrokenImage:
        return False
    return None if outline is None else bool(outline.any())


def with_masks(
    dataset: Dataset, masks: ObjectMasks, end: str, both: str, partners: Sequence[int] | None = None
) -> Layout:
    """One item per image: the image and its mask; with partners also another image and its mask."""
    everything = Dataset([*dataset.sources, masks])
    own = np.arange(len(dataset)) if dataset.selection is None else dataset.selection
    first = dataset.starts[-1]
    columns = [own, first + np.arange(len(dataset))]
    if partners is not None:
        columns += [own[list(partners)], first + np.asarray(partners)]
    return replace(mirror(dataset, end, both=both), dataset=everything, sources=np.stack(columns, 1))


def partners_of(
    kind: str, dataset: Dataset, masks: ObjectMasks, same: bool, seeds: Sequence[int]
) -> list[int]:
    """For each image another one of its class, or one of another class, whose object is known; an error without one."""
    if dataset.labels is None:
        raise UserError(f"make {kind}: SRC has no classes; give one folder per class, or ground=removed")
    known = cache(partial(has_object, masks))
    out = []
    for i, seed in enumerate(seeds):
        rows = np.flatnonzero((dataset.labels == dataset.labels[i]) == same)
        order = np.random.default_rng(seed).permutation(rows[rows != i]).tolist()
        partner = next(filter(known, order), None)
        if partner is None:
            which = "another image of its class" if same else "an image of another class"
            raise UserError(
                f"make {kind}: {dataset.name(i)} has no partner: {which} with a known object is not there"
            )
        out.append(partner)
    return out


def mask_of(piece: MakerTask, k: int = 1) -> NDArray[np.bool_]:
    """Source k as a mask; raises BrokenImage where it has no object."""
    mask = piece.image(k)[..., 0] >= 128
    if not mask.any():
        raise BrokenImage(piece.names[k], "has no object: its mask is empty")
    return mask
