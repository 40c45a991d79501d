"""What every kind of image set can do, and the part that all listed sets share."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import Image, decode
from cuewise.data.index import Index


class Source(Protocol):
    """One image set; `cuewise.data.Dataset` joins several. Must be picklable and safe to fork."""

    @property
    def labels(self) -> NDArray[np.int64] | None: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> dict[str, NDArray[Any]]: ...
    def __len__(self) -> int: ...
    def name(self, i: int) -> str: ...
    def image(self, i: int) -> Image: ...
    def read(self, i: int) -> bytes | None: ...
    def fingerprint(self) -> dict[str, Any]: ...


class Listed:
    """A set whose images are encoded bytes under the names of an index; subclasses say how to read one."""

    kind: ClassVar[str]

    def __init__(self, path: str, index: Index) -> None:
        self.path, self.index = path, index
        self.labels = None if index.labels is None else index.labels.astype(np.int64)
        self.classes = index.classes
        self.columns: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.index)

    def name(self, i: int) -> str:
        return self.index.name(i)

    def read(self, i: int) -> bytes:
        raise NotImplementedError

    def image(self, i: int) -> Image:
        return decode(self.read(i), self.name(i))

    def fingerprint(self) -> dict[str, Any]:
        """Count, hash of the list, where it came from, and what was left out and why."""
        return {
            "count": len(self),
            "hash": self.index.hash,
            "sources": [{"data": self.path, "kind": self.kind, "count": len(self), "hash": self.index.hash}],
            "skipped": [{"path": s.path, "why": s.why} for s in self.index.skipped],
        }
