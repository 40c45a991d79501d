"""What every kind of image set can do, and the part that all listed sets share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import Image, decode
from cuewise.data.index import Index, Skipped
from cuewise.data.sample import NOTHING, Facts


class Source(Protocol):
    """One image set; `cuewise.data.Dataset` joins several. Must be picklable and safe to fork.

    labels          one class per image, positions in `classes`; None without
    object_classes  what boxes, masks and several labels are positions in; empty without annotations
    columns         facts of all images at once, one row per image
    facts(i)        what is known of image i beside its label, read when it is asked for

    A source whose image(i) is what read(i) decodes to, and nothing else, may say `as_stored = True`: with
    loop.decode=reduced its JPEGs are then decoded smaller.
    """

    @property
    def labels(self) -> NDArray[np.int64] | None: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def object_classes(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> dict[str, NDArray[Any]]: ...
    def facts(self, i: int) -> Facts: ...
    def __len__(self) -> int: ...
    def name(self, i: int) -> str: ...
    def image(self, i: int) -> Image: ...
    def read(self, i: int) -> bytes | None: ...
    def fingerprint(self) -> dict[str, Any]: ...


class Unannotated:
    """The part of a source that knows nothing of its images but their labels."""

    object_classes: tuple[str, ...] = ()

    def facts(self, i: int) -> Facts:
        return NOTHING


class Listed(Unannotated):
    """A set whose images are encoded bytes under the names of an index; subclasses say how to read one."""

    kind: ClassVar[str]
    as_stored: ClassVar[bool] = True

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
        return one_source(self.path, self.kind, len(self), self.index.hash, self.index.skipped)


def one_source(
    data: str, kind: str, count: int, digest: str, skipped: Iterable[Skipped] = (), **about: Any
) -> dict[str, Any]:
    """The fingerprint of a set that has one source; about: what else is to be known of that."""
    source = {"data": data, "kind": kind, "count": count, "hash": digest, **about}
    left_out = [{"path": s.path, "why": s.why} for s in skipped]
    return {"count": count, "hash": digest, "sources": [source], "skipped": left_out}
