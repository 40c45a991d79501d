"""The embedded shapes as a source: images are drawn on demand, so there are no bytes to read."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import Image
from cuewise.data.sample import NOTHING, Boxes, Facts
from cuewise.data.shapes import ShapeSet
from cuewise.data.source import one_source


class ShapesSource:
    """`shapes`, `shapes:conflict`, `shapes:conflict?n=500&size=64&seed=3`."""

    def __init__(self, spec: str) -> None:
        self.shapes = ShapeSet.parse(spec)
        self.spec = spec

    @property
    def labels(self) -> NDArray[np.int64]:
        return self.shapes.labels

    @property
    def classes(self) -> tuple[str, ...]:
        return self.shapes.classes

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return self.shapes.columns

    @property
    def object_classes(self) -> tuple[str, ...]:
        return self.shapes.shapes if self.shapes.split == "scenes" else ()

    def facts(self, i: int) -> Facts:
        """The objects of a scene: their boxes, the mask of their shapes, and which of them is out of context."""
        if self.shapes.split != "scenes":
            return NOTHING
        c = self.columns
        there = np.flatnonzero(c["shape"][i] >= 0)
        out_of_context = there == c["odd"][i]
        boxes = Boxes(
            c["boxes"][i, there].astype(np.float32), c["shape"][i, there], {"out_of_context": out_of_context}
        )
        return Facts(labels=c["present"][i], boxes=boxes, masked=partial(self.shapes.mask, i))

    def outline(self, i: int) -> NDArray[np.bool_] | None:
        """H×W: where the objects are."""
        return self.shapes.outline(i)

    def __len__(self) -> int:
        return len(self.shapes)

    def name(self, i: int) -> str:
        return self.shapes.name(i)

    def image(self, i: int) -> Image:
        return self.shapes.image(i)

    def read(self, i: int) -> bytes | None:
        return None

    def fingerprint(self) -> dict[str, Any]:
        return one_source(self.spec, "shapes", len(self), self.shapes.fingerprint_hash())
