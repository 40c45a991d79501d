"""Masks of objects that the user gives: found by the images' names, and the share of a map that falls inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answers import Answers
from cuewise.data import open_data
from cuewise.encoders.embed import evaluation_view
from cuewise.errors import UserError

Maps = NDArray[np.float32]


def masks_option(typed: str) -> str:
    """A set of masks; one that does not exist is refused now."""
    open_data(typed)
    return typed


def coverage(maps: Maps, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of each map's saliency that falls inside its mask; NaN for a map without any."""
    total = maps.sum((1, 2), dtype=np.float64)
    inside = (maps * masks).sum((1, 2), dtype=np.float64)
    return np.asarray(np.divide(inside, total, out=np.full(len(maps), np.nan), where=total > 0))


def masks_of(
    spec: str, said: Answers, size: int, interpolation: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows that have a mask, and the masks as the model would see them: the file of the same name, whatever its ending."""
    data = open_data(spec)
    place = {stem(data.name(i)): i for i in range(len(data))}
    rows = [r for r in range(len(said.index)) if stem(said.image_name(r)) in place]
    if not rows:
        raise UserError(
            f"--masks {spec}: none of its {len(data)} files is named as an image of {said.name} "
            f"(one of those is {said.image_name(0)})"
        )
    found = [
        evaluation_view(data.image(place[stem(said.image_name(r))]), size, interpolation).mean(2) >= 128
        for r in rows
    ]
    return np.array(rows), np.stack(found)


def stem(name: str) -> str:
    """A file's name without its ending."""
    return name.rpartition(".")[0] or name
