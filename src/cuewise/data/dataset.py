"""Image sets joined into one, with one list of classes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuewise.data.decode import Image
from cuewise.data.source import Source


class Dataset:
    """Several sources one after the other, or a selection from them; made by `open_data`.

    `labels` index `classes`, which are merged by name; they are None as soon as one source has none.
    """

    def __init__(self, sources: Sequence[Source], selection: NDArray[np.int64] | None = None) -> None:
        self.sources = tuple(sources)
        self.starts = [0]
        for source in self.sources:
            self.starts.append(self.starts[-1] + len(source))
        self.selection = selection
        labels, self.classes = join_labels(self.sources)
        columns = join_columns(self.sources)
        if selection is not None:
            labels = None if labels is None else labels[selection]
            columns = {k: v[selection] for k, v in columns.items()}
        self.labels: NDArray[np.int64] | None = labels
        self.columns = columns

    def __len__(self) -> int:
        return self.starts[-1] if self.selection is None else len(self.selection)

    def locate(self, i: int) -> tuple[Source, int]:
        """The source that image i comes from, and its number there."""
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"image {i} of {n}")
        i = int(i) % n
        if self.selection is not None:
            i = int(self.selection[i])
        s = bisect_right(self.starts, i) - 1
        return self.sources[s], i - self.starts[s]

    def name(self, i: int) -> str:
        """Name inside its source, e.g. 'dog/rex.jpg'."""
        source, j = self.locate(i)
        return source.name(j)

    def image(self, i: int) -> Image:
        """H×W×3 pixels; raises BrokenImage."""
        source, j = self.locate(i)
        return source.image(j)

    def read(self, i: int) -> bytes | None:
        """Encoded bytes as stored; None where images are generated or stored as bare pixels."""
        source, j = self.locate(i)
        return source.read(j)

    def select(self, indices: ArrayLike) -> Dataset:
        """The images at `indices` (or where a mask is true), in that order; classes stay as they are."""
        chosen = np.asarray(indices)
        if chosen.dtype == bool:
            if len(chosen) != len(self):
                raise IndexError(f"a mask of {len(chosen)} for {len(self)} images")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64).reshape(-1)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise IndexError(f"selected images must lie in 0…{len(self) - 1}")
        return Dataset(self.sources, chosen if self.selection is None else self.selection[chosen])

    def fingerprint(self) -> dict[str, Any]:
        """Count, hash of the list, sources, and files left out and why."""
        parts = [source.fingerprint() for source in self.sources]
        hashes = [str(part["hash"]) for part in parts]
        digest = hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
        if self.selection is not None:
            digest = hashlib.sha256(digest.encode() + self.selection.astype("<i8").tobytes()).hexdigest()
        return {
            "count": len(self),
            "hash": digest,
            "sources": [source for part in parts for source in part["sources"]],
            "skipped": [skipped for part in parts for skipped in part["skipped"]],
        }


def join_labels(sources: Sequence[Source]) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Labels over all sources with classes merged by name; None where a source has none."""
    parts = []
    for source in sources:
        if source.labels is None:
            return None, ()
        parts.append(np.asarray(source.labels, dtype=np.int64))
    lists = {tuple(source.classes) for source in sources}
    if len(lists) == 1:  # keeps an order that means something, as in CIFAR or 0…9
        return np.concatenate(parts), lists.pop()
    classes = tuple(sorted(set().union(*lists)))
    position = {name: i for i, name in enumerate(classes)}
    moved = [
        np.array([position[name] for name in source.classes], dtype=np.int64)[part]
        for source, part in zip(sources, parts)
    ]
    return np.concatenate(moved), classes


def join_columns(sources: Sequence[Source]) -> dict[str, NDArray[Any]]:
    """Columns that every source has, in the same shape."""
    first, *rest = [source.columns for source in sources]
    shared = [
        key
        for key, value in first.items()
        if all(k in c and c[k].shape[1:] == value.shape[1:] for c in rest for k in [key])
    ]
    return {key: np.concatenate([first[key], *(c[key] for c in rest)]) for key in shared}
