"""Right and wrong answers on copies whose object or background was changed, of the images whose object is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Needs
from cuewise.audits.change import Change
from cuewise.audits.changed import protocol_of, right
from cuewise.audits.keys import data_key
from cuewise.audits.masks import masks_for
from cuewise.audits.measures import Right
from cuewise.audits.scenes import Scenes, scenes_of
from cuewise.audits.subject import Subject
from cuewise.errors import UserError

NO_OBJECTS = (
    "it is not known where the objects are: give --masks DATA (named as the images of {}, white where the object is), "
    "or a test set with masks or boxes"
)


def scenes(subject: Subject) -> Scenes:
    """The objects of the base set, found once; Unasked where there are none."""
    name, data = subject.base_set
    known = subject.model.scenes
    if data_key(data) not in known:
        known[data_key(data)] = scenes_of(data, masks_for(subject, data, name), subject.seed)
    found = known[data_key(data)]
    if not found.usable.any():
        given = subject.option("masks")
        if given is None:
            raise Unasked(NO_OBJECTS.format(name))
        raise UserError(f"--masks {given.spec}: no mask can be used; {': '.join(found.unused[0])}")
    return found


def needs(subject: Subject, changes: Sequence[Change]) -> Needs:
    """Copies of the base set; its objects are found now, so that the pass can change them."""
    scenes(subject)
    return Needs(changes=changes)


@dataclass(frozen=True)
class Hits:
    """One row per image that was asked about."""

    subject: Subject
    right: Right  # N×V
    rows: NDArray[np.int64]  # of the base set
    scenes: Scenes

    def where(self, kept: NDArray[np.bool_]) -> Right:
        """The rows of images of the base set that are `kept`."""
        return self.right[kept[self.rows]]

    def protocol(self, what: str, kept: NDArray[np.bool_] | None = None) -> str:
        """Who answered on what, where the objects are known from, and how many images of the base set were not `kept`."""
        text = f"{protocol_of(self.subject, what)}; {self.scenes.masks.how}"
        left = int((~(self.scenes.usable if kept is None else kept)).sum())
        return text + (f"; {left} images whose object cannot be used left out" if left else "")


def hits(subject: Subject, changes: Sequence[Change]) -> Hits:
    """Answers on copies of the images whose object can be used."""
    found = scenes(subject)
    answered = right(subject, changes)
    data = subject.base_set[1]
    index, _ = subject.answers_to(changes[0])
    rows = index[subject.answerer(data).labels(data)[index] >= 0]
    kept = found.usable[rows]
    return Hits(subject, answered[kept], rows[kept], found)
