"""A sample: an image and all that is known of it, which travels with it to the method, the probe and the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import Image

Mask = NDArray[np.uint8]  # H×W: one class per pixel


@dataclass(frozen=True)
class Boxes:
    """The annotated objects of one image.

    corners  n×4 float32: left, top, right, bottom in pixels, right and bottom exclusive
    classes  n int64: positions in the set's `object_classes`, −1 where unknown
    flags    what else is known of each box, n booleans per name, e.g. "difficult" or "out_of_context"
    """

    corners: NDArray[np.float32]
    classes: NDArray[np.int64]
    flags: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.corners)

    def select(self, rows: NDArray[Any]) -> Boxes:
        """The boxes at `rows` (numbers or a mask)."""
        flags = {name: flag[rows] for name, flag in self.flags.items()}
        return Boxes(self.corners[rows], self.classes[rows], flags)

    @property
    def areas(self) -> NDArray[np.float32]:
        """n areas in square pixels."""
        sides = np.maximum(self.corners[:, 2:] - self.corners[:, :2], 0)
        return sides[:, 0] * sides[:, 1]


def no_boxes() -> Boxes:
    """An image on which nothing is annotated."""
    return Boxes(np.zeros((0, 4), np.float32), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Facts:
    """What a source knows of an image beside its label; None where it does not say.

    labels   several labels: one boolean per class of `object_classes`
    boxes    annotated objects
    masked   gives `mask`, the class of each pixel; it is read only where something asks for it
    trusted  whether the label is known to be right (gold), or may be wrong (silver)
    """

    labels: NDArray[np.bool_] | None = None
    boxes: Boxes | None = None
    masked: Callable[[], Mask | None] | None = None
    trusted: bool = True

    @property
    def mask(self) -> Mask | None:
        """H×W: the class of each pixel."""
        return None if self.masked is None else self.masked()


NOTHING = Facts()


@dataclass(frozen=True)
class Sample:
    """Image `index` of a set: pixels H×W×3, its name, its label (−1 without) and the other facts."""

    image: Image
    index: int = 0
    name: str = ""
    label: int = -1
    facts: Facts = NOTHING


@dataclass(frozen=True)
class Shown:
    """What a transform makes of a sample: views by role, and the facts as they are after the transform.

    views  role → array; the arrays of a role have the same shape for all samples (negatives are M×S×S×3)
    facts  name → array or number where all samples have the same shape, anything else where it is ragged (boxes);
           what belongs to one view is named "ROLE.NAME", e.g. "query.boxes"
    """

    views: dict[str, NDArray[Any]]
    facts: dict[str, Any] = field(default_factory=dict)
