"""What there is to make: for each item its source images and the names of the files that come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, Image, decode
from cuewise.makers.names import Stems


@dataclass(frozen=True)
class MakerTask:
    """All that making one item takes; it can be sent to another machine."""

    index: int
    names: tuple[str, ...]  # of the sources
    data: tuple[bytes | Image, ...]  # as stored, or pixels where the source has no bytes
    files: tuple[str, ...]  # to write; with an original, that one first
    facts: dict[str, Any] = field(default_factory=dict)  # for the manifest: class, shard, …

    def image(self, k: int = 0) -> Image:
        """Source k, decoded; raises BrokenImage."""
        data = self.data[k]
        return decode(data, self.names[k]) if isinstance(data, bytes) else data


@dataclass(frozen=True, eq=False)
class Layout:
    """n items: source images `sources` [n, k] of the data set, one stem each, and the variants made of each.

    A variant is the text before and behind the stem: ("fog/1/", ".png"). `facts` are columns of the manifest.
    """

    dataset: Dataset
    sources: NDArray[np.int64]
    stems: Stems
    variants: tuple[tuple[str, str], ...]
    originals: list[str] | None = None  # endings under which the sources themselves are written, too
    facts: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    shard_size: int = 0  # items per tar; 0 for a tree of files

    def __len__(self) -> int:
        return len(self.sources)

    def first(self, n: int | None) -> Layout:
        """The first n items."""
        return self if n is None else replace(self, sources=self.sources[:n])

    @property
    def outputs(self) -> int:
        """Files per item."""
        return len(self.variants) + (self.originals is not None)

    def files(self, i: int) -> tuple[str, ...]:
        """Names of the files of item i, relative to the folder or inside its tar."""
        stem = self.stems[i]
        made = tuple(f"{before}{stem}{behind}" for before, behind in self.variants)
        return made if self.originals is None else (stem + self.originals[i], *made)

    def names(self, i: int) -> tuple[str, ...]:
        """Names of the sources of item i."""
        return tuple(self.dataset.name(int(k)) for k in self.sources[i])

    def piece(self, i: int) -> MakerTask:
        """Item i with its sources read; raises BrokenImage where one cannot be."""
        data = tuple(self._read(int(k)) for k in self.sources[i])
        return MakerTask(i, self.names(i), data, self.files(i), self.fact(i))

    def fact(self, i: int) -> dict[str, Any]:
        """What the manifest holds about item i beside its parameters."""
        found = {key: _plain(column[i]) for key, column in self.facts.items()}
        if self.shard_size:
            found["shard"] = self.shard_name(i // self.shard_size)
        return found

    def _read(self, k: int) -> bytes | Image:
        data = self.dataset.read(k)
        return self.dataset.image(k) if data is None else data

    @property
    def shards(self) -> int:
        """How many tars; 0 for a tree of files."""
        return -(-len(self) // self.shard_size) if self.shard_size else 0

    def shard_name(self, shard: int) -> str:
        """'shards-007.tar'."""
        return f"shards-{shard:0{max(3, len(str(self.shards - 1)))}d}.tar"


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
