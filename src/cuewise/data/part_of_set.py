"""Some rows of a data set, as a source."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cuewise.data.dataset import Dataset
from cuewise.data.decode import Image
from cuewise.data.sample import Facts


class PartOfSet:
    """Images of `whole` at `rows`; a subclass says which, and what their classes are."""

    whole: Dataset
    rows: NDArray[Any]

    @property
    def as_stored(self) -> bool:
        return self.whole.as_stored

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, i: int) -> str:
        return self.whole.name(int(self.rows[i]))

    def image(self, i: int) -> Image:
        return self.whole.image(int(self.rows[i]))

    def read(self, i: int) -> bytes | None:
        return self.whole.read(int(self.rows[i]))

    def facts(self, i: int) -> Facts:
        return self.whole.facts(int(self.rows[i]))
