"""A set under other labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.dataset import Dataset
from cuewise.data.decode import Image
from cuewise.data.sample import Facts


class Relabelled:
    """The images of a set with other labels (none: None), classes and columns."""

    def __init__(
        self,
        data: Dataset,
        labels: NDArray[np.int64] | None,
        classes: tuple[str, ...],
        columns: dict[str, NDArray[Any]] | None = None,
    ) -> None:
        self.data, self.labels, self.classes = data, labels, classes
        self.columns: dict[str, NDArray[Any]] = data.columns if columns is None else columns
        self.object_classes = data.object_classes

    @property
    def as_stored(self) -> bool:
        return self.data.as_stored

    def facts(self, i: int) -> Facts:
        return self.data.facts(i)

    def __len__(self) -> int:
        return len(self.data)

    def name(self, i: int) -> str:
        return self.data.name(i)

    def image(self, i: int) -> Image:
        return self.data.image(i)

    def read(self, i: int) -> bytes | None:
        return self.data.read(i)

    def fingerprint(self) -> dict[str, Any]:
        return self.data.fingerprint()
