"""Masks of objects that the user gives, and the share of a map that falls inside."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answers import Answers
from cuewise.audits.keys import data_key
from cuewise.audits.subject import Subject
from cuewise.data import BrokenImage, Dataset, open_data
from cuewise.data.object_masks import ObjectMasks, object_masks
from cuewise.encoders.embed import evaluation_view
from cuewise.errors import UserError

Maps = NDArray[np.float32]


@dataclass(frozen=True)
class GivenMasks:
    """--masks as typed, and the key of what is there."""

    spec: str
    key: str
    data: Dataset = field(repr=False, compare=False)


def masks_option(typed: str) -> GivenMasks:
    """A set of masks; one that does not exist is refused now."""
    data = open_data(typed)
    return GivenMasks(typed, data_key(data), data)


def value_option(typed: str) -> int:
    """The value of an object's pixels in a mask."""
    if not typed.isdigit() or int(typed) > 255:
        raise UserError(f"--mask-value {typed}: a whole number from 0 to 255")
    return int(typed)


def masks_for(subject: Subject, data: Dataset, name: str) -> ObjectMasks:
    """Where the objects of a set are: by --masks, else by what the set knows."""
    given, value = subject.option("masks"), subject.option("mask_value")
    if given is None:
        return object_masks(data, None, value, "--masks", name)
    return object_masks(data, given.data, value, f"--masks {given.spec}", name)


def coverage(maps: Maps, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of each map's saliency that falls inside its mask; NaN for a map without any."""
    total = maps.sum((1, 2), dtype=np.float64)
    inside = (maps * masks).sum((1, 2), dtype=np.float64)
    return np.asarray(np.divide(inside, total, out=np.full(len(maps), np.nan), where=total > 0))


def masks_of(
    subject: Subject, answers: Answers, size: int, interpolation: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows that have a mask, and the masks as the model would see them."""
    masks = masks_for(subject, answers.data, answers.name)
    rows, found = [], []
    why = ""
    for row, i in enumerate(answers.index.tolist()):
        try:
            found.append(evaluation_view(masks.image(i), size, interpolation).mean(2) >= 128)
            rows.append(row)
        except BrokenImage as error:
            why = str(error)
    if not rows:
        raise UserError(f"--masks {subject.option('masks').spec}: no mask can be used; {why}")
    return np.array(rows), np.stack(found)
