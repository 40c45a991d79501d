"""Image sets joined into one, with one list of classes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cuewise.data.decode import Image, SmallestCrop, decode
from cuewise.data.sample import Facts, Sample
from cuewise.data.source import Source


class Dataset:
    """Several sources one after the other, or a selection from them; made by `open_data`.

    `labels` index `classes`, which are merged by name; they are None as soon as one source has none. `object_classes`
    are what boxes and several labels index, merged likewise. `data[i]` is the sample i: image, label and facts.

    crops: JPEGs are reduced while they are decoded, as far as these crops allow; boxes and masks stay in full pixels.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        selection: NDArray[np.int64] | None = None,
        crops: Sequence[SmallestCrop] = (),
    ) -> None:
        self.sources = tuple(sources)
        self.crops = tuple(crops)
        self.starts = [0, *accumulate(map(len, self.sources))]
        self.selection = selection
        labels, self.classes = join_labels(self.sources)
        columns = join_columns(self.sources)
        if selection is not None:
            labels = None if labels is None else labels[selection]
            columns = {k: v[selection] for k, v in columns.items()}
        self.labels: NDArray[np.int64] | None = labels
        self.columns = columns
        annotated = [source.object_classes for source in self.sources if source.object_classes]
        self.object_classes = join_names(annotated) if annotated else ()

    def __len__(self) -> int:
        return self.starts[-1] if self.selection is None else len(self.selection)

    def __getitem__(self, i: int) -> Sample:
        return self.sample(i)

    def __iter__(self) -> Iterator[Sample]:
        return (self.sample(i) for i in range(len(self)))

    def __repr__(self) -> str:
        kinds = f", {len(self.classes)} classes" if self.labels is not None else ", no labels"
        objects = f", objects of {len(self.object_classes)} classes" if self.object_classes else ""
        return f"Dataset({len(self)} images{kinds}{objects})"

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
        stored = self.stored(i) if self.crops else None
        return source.image(j) if stored is None else decode(stored, source.name(j), self.crops)

    def stored(self, i: int) -> bytes | None:
        """Encoded bytes, where the image is what they decode to and nothing else."""
        source, j = self.locate(i)
        return source.read(j) if getattr(source, "as_stored", False) else None

    def facts(self, i: int) -> Facts:
        """What is known of image i beside its label, in the classes of the whole set."""
        return self._facts(*self.locate(i))

    def _facts(self, source: Source, j: int) -> Facts:
        found = source.facts(j)
        same = not source.object_classes or source.object_classes == self.object_classes
        return found if same else self._renumbered(found, source)

    def _renumbered(self, facts: Facts, source: Source) -> Facts:
        """Facts of a source in the positions of the joined object classes."""
        at = np.array([self.object_classes.index(name) for name in source.object_classes], np.int64)
        labels, boxes = facts.labels, facts.boxes
        if labels is not None:
            labels = np.isin(np.arange(len(self.object_classes)), at[labels])
        if boxes is not None:
            boxes = replace(boxes, classes=np.where(boxes.classes >= 0, at[boxes.classes], -1))
        return replace(facts, labels=labels, boxes=boxes)

    def sample(self, i: int) -> Sample:
        """Image i with its name, label and facts; raises BrokenImage."""
        source, j = self.locate(i)
        i = int(i) % len(self)
        label = -1 if self.labels is None else int(self.labels[i])
        return Sample(self.image(i), i, source.name(j), label, self._facts(source, j))

    @property
    def as_stored(self) -> bool:
        """Whether every image is what its stored bytes decode to."""
        return all(getattr(source, "as_stored", False) for source in self.sources)

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
        return Dataset(self.sources, chosen if self.selection is None else self.selection[chosen], self.crops)

    def reduced_for(self, crops: Sequence[SmallestCrop]) -> Dataset:
        """The same images, of which no more than such crops will be shown."""
        return Dataset(self.sources, self.selection, crops)

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
    lists = [tuple(source.classes) for source in sources]
    classes = join_names(lists)
    if len(set(lists)) == 1:  # keeps an order that means something, as in CIFAR or 0…9
        return np.concatenate(parts), classes
    position = {name: i for i, name in enumerate(classes)}
    moved = [
        np.array([position[name] for name in source.classes], dtype=np.int64)[part]
        for source, part in zip(sources, parts)
    ]
    return np.concatenate(moved), classes


def join_names(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """One list of names: as it is where all are equal, else sorted without repeats."""
    return lists[0] if len(set(lists)) == 1 else tuple(sorted(set().union(*lists)))


def join_columns(sources: Sequence[Source]) -> dict[str, NDArray[Any]]:
    """Columns that every source has, in the same shape."""
    first, *rest = [source.columns for source in sources]
    return {
        key: np.concatenate([value, *(c[key] for c in rest)])
        for key, value in first.items()
        if all(key in c and c[key].shape[1:] == value.shape[1:] for c in rest)
    }
