"""The list of images in a set as a few flat arrays, so that a million names cost megabytes, not gigabytes."""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TWICE = "another file has the same name; the last one in the archive is used"
LOOSE = "beside the class folders, so it has no label: move it into one of them"


class Skipped(NamedTuple):
    """A file that looks like an image and cannot be used."""

    path: str
    why: str


@dataclass(frozen=True, eq=False)
class Index:
    """Names in byte order with their labels; `where` holds one integer column per fact (offset, size, …)."""

    blob: bytes  # all names, one after the other
    offsets: NDArray[np.uint64]  # [n + 1]; name i is blob[offsets[i]:offsets[i + 1]]
    labels: NDArray[np.int32] | None  # [n]
    classes: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    hash: str
    where: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, i: int) -> bytes:
        """Name i as the bytes that the file system or archive knows."""
        return self.blob[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def name(self, i: int) -> str:
        """Name i as text; bytes that are not UTF-8 become surrogates, as everywhere in Python."""
        return os.fsdecode(self.raw(i))


class Builder:
    """Collects names one at a time; `finish` sorts them, labels them and takes the hash."""

    def __init__(self, *columns: str) -> None:
        self.blob = bytearray()
        self.offsets = array("Q", [0])
        self.columns = {name: array("q") for name in columns}
        self.skipped: list[Skipped] = []

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def add(self, name: bytes, *facts: int) -> None:
        """One more image; `facts` are the values of the columns, in their order."""
        self.blob += name
        self.offsets.append(len(self.blob))
        for column, fact in zip(self.columns.values(), facts, strict=True):
            column.append(fact)

    def skip(self, name: bytes, why: str) -> None:
        """One more file that cannot be used."""
        self.skipped.append(Skipped(os.fsdecode(name), why))

    def finish(self, *, labelled: bool = True) -> Index:
        """The finished index; with `labelled`, first-level folders become classes (see `label`)."""
        offsets = np.frombuffer(self.offsets, dtype=np.uint64)
        where = {k: np.frombuffer(v, dtype=np.int64) for k, v in self.columns.items()}
        blob = bytes(self.blob)
        self.blob = bytearray()
        order = sort(blob, offsets)
        if order is not None:
            blob, offsets, where = take(blob, offsets, where, order)
        skipped = list(self.skipped)
        twice = duplicates(blob, offsets)
        if len(twice):
            skipped += [
                Skipped(os.fsdecode(blob[int(offsets[i]) : int(offsets[i + 1])]), TWICE) for i in twice
            ]
            keep = np.delete(np.arange(len(offsets) - 1), twice)
            blob, offsets, where = take(blob, offsets, where, keep)
        labels: NDArray[np.int32] | None = None
        classes: tuple[str, ...] = ()
        if labelled:
            labels, classes = label(blob, offsets)
        if labels is not None and (labels < 0).any():
            for i in np.flatnonzero(labels < 0):
                name = blob[int(offsets[i]) : int(offsets[i + 1])]
                skipped.append(Skipped(os.fsdecode(name), LOOSE))
            keep = np.flatnonzero(labels >= 0)
            blob, offsets, where = take(blob, offsets, where, keep)
            labels = labels[keep]
        return make(blob, offsets, labels, classes, skipped, where)


def make(
    blob: bytes,
    offsets: NDArray[np.uint64],
    labels: NDArray[np.int32] | None,
    classes: tuple[str, ...],
    skipped: list[Skipped],
    where: dict[str, NDArray[np.int64]],
) -> Index:
    """An index with its hash."""
    listed = tuple(sorted(skipped))
    return Index(blob, offsets, labels, classes, listed, fingerprint(blob, offsets, labels, classes), where)


def fingerprint(
    blob: bytes, offsets: NDArray[np.uint64], labels: NDArray[np.int32] | None, classes: tuple[str, ...]
) -> str:
    """SHA-256 of the list: names, their boundaries and labels; not of where the set lies nor of pixels."""
    digest = hashlib.sha256(blob)
    digest.update(offsets.astype("<u8").data)
    if labels is not None:
        digest.update(labels.astype("<i4").data)
        for name in classes:
            digest.update(os.fsencode(name) + b"\0")
    return digest.hexdigest()


def sort(blob: bytes, offsets: NDArray[np.uint64]) -> NDArray[np.int64] | None:
    """The order that sorts the names as bytes, or None where they are sorted already."""
    n = len(offsets) - 1
    bounds = offsets.tolist() if n < 10_000 else offsets  # a list is quicker, and only small where short
    previous, start, tidy = b"", 0, True
    for i in range(n):
        stop = int(bounds[i + 1])
        current = blob[start:stop]
        if current < previous:
            tidy = False
            break
        previous, start = current, stop
    if tidy:
        return None
    # One bytes object per name with its position behind it: half the memory of names beside integers. A zero
    # byte cannot occur in a name, so it ends the comparison where one name begins another.
    keys = [blob[int(offsets[i]) : int(offsets[i + 1])] + b"\0" + struct.pack(">Q", i) for i in range(n)]
    keys.sort()
    return np.fromiter((struct.unpack(">Q", key[-8:])[0] for key in keys), dtype=np.int64, count=n)


def duplicates(blob: bytes, offsets: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions, in sorted names, of all but the last of equal ones."""
    lengths = np.diff(offsets)
    found = [
        i
        for i in np.flatnonzero(lengths[1:] == lengths[:-1])
        if blob[int(offsets[i]) : int(offsets[i + 1])] == blob[int(offsets[i + 1]) : int(offsets[i + 2])]
    ]
    return np.array(found, dtype=np.int64)


def take(
    blob: bytes, offsets: NDArray[np.uint64], where: dict[str, NDArray[np.int64]], order: NDArray[np.int64]
) -> tuple[bytes, NDArray[np.uint64], dict[str, NDArray[np.int64]]]:
    """The entries at `order`, in that order."""
    out = bytearray()
    for i in order:
        out += blob[int(offsets[i]) : int(offsets[i + 1])]
    bounds = np.zeros(len(order) + 1, dtype=np.uint64)
    np.cumsum((offsets[1:] - offsets[:-1])[order], out=bounds[1:])
    return bytes(out), bounds, {k: v[order] for k, v in where.items()}


def label(blob: bytes, offsets: NDArray[np.uint64]) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Labels from the first folder of each name (sorted); −1 for names without one.

    No folders, or more loose images than images in folders: the set counts as flat and has no labels.
    """
    n = len(offsets) - 1
    labels = np.full(n, -1, dtype=np.int32)
    classes: list[str] = []
    current = b""
    for i in range(n):
        start, stop = int(offsets[i]), int(offsets[i + 1])
        cut = blob.find(b"/", start, stop)
        if cut < 0:
            continue
        if not classes or blob[start:cut] != current:
            current = blob[start:cut]
            classes.append(os.fsdecode(current))
        labels[i] = len(classes) - 1
    if not classes or 2 * int((labels < 0).sum()) > n:
        return None, ()
    return labels, tuple(classes)
