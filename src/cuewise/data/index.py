"""The list of images in a set as a few flat arrays, so that a million names cost megabytes, not gigabytes."""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TWICE = "another file has the same name; the last one in the archive is used"
MOST_CLASSES = 1_000_000
LOOSE = "beside the class folders, so it has no label: move it into one of them"


class Skipped(NamedTuple):
    """A file that looks like an image and cannot be used."""

    path: str
    why: str


@dataclass(frozen=True, eq=False)
class IndexTable:
    """Names and columns, before they are an index; `where` holds one integer column per fact (offset, size, …)."""

    blob: bytes  # all names, one after the other
    offsets: NDArray[np.uint64]  # [n + 1]; name i is blob[offsets[i]:offsets[i + 1]]
    where: dict[str, NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, i: int) -> bytes:
        """Name i as the bytes that the file system or archive knows."""
        return self.blob[int(self.offsets[i]) : int(self.offsets[i + 1])]

    def name(self, i: int) -> str:
        """Name i as text; bytes that are not UTF-8 become surrogates, as everywhere in Python."""
        return os.fsdecode(self.raw(i))


@dataclass(frozen=True, eq=False)
class Index(IndexTable):
    """Names in byte order with their labels."""

    labels: NDArray[np.int32] | None  # [n]
    classes: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    hash: str


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

    def finish(self, rename: Callable[[bytes, int], bytes] | None = None) -> Index:
        """The finished index, sorted; first-level folders become classes (see `label`).

        Of equal names the last counts, unless `rename(name, value of the first column)` can distinguish them.
        """
        table = IndexTable(
            bytes(self.blob),
            np.frombuffer(self.offsets, dtype=np.uint64),
            {k: np.frombuffer(v, dtype=np.int64) for k, v in self.columns.items()},
        )
        self.blob = bytearray()
        order = sort(table)
        table = table if order is None else take(table, order)
        skipped = list(self.skipped)
        twice = duplicates(table)
        if len(twice) and rename is not None:
            return self._renamed(table, twice, rename).finish()
        if len(twice):
            skipped += [Skipped(table.name(i), TWICE) for i in twice.tolist()]
            table = take(table, np.delete(np.arange(len(table)), twice))
        labels, classes = label(table)
        if labels is not None and (labels < 0).any():
            skipped += [Skipped(table.name(i), LOOSE) for i in np.flatnonzero(labels < 0).tolist()]
            keep = np.flatnonzero(labels >= 0)
            table, labels = take(table, keep), labels[keep]
        if labels is None:
            labels, classes = numbered(table.where.get("cls"))
        return make(table, labels, classes, skipped)

    def _renamed(
        self, table: IndexTable, twice: NDArray[np.int64], rename: Callable[[bytes, int], bytes]
    ) -> Builder:
        again = Builder(*self.columns)
        again.skipped = self.skipped
        source = next(iter(table.where.values()))
        equal = set(twice.tolist()) | set((twice + 1).tolist())
        for i in range(len(table)):
            name = rename(table.raw(i), int(source[i])) if i in equal else table.raw(i)
            again.add(name, *(int(v[i]) for v in table.where.values()))
        return again


def make(
    table: IndexTable, labels: NDArray[np.int32] | None, classes: tuple[str, ...], skipped: list[Skipped]
) -> Index:
    """An index with its hash."""
    digest = fingerprint(table.blob, table.offsets, labels, classes)
    return Index(table.blob, table.offsets, table.where, labels, classes, tuple(sorted(skipped)), digest)


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


def sort(table: IndexTable) -> NDArray[np.int64] | None:
    """The order that sorts the names as bytes, or None where they are sorted already."""
    n = len(table)
    previous = b""
    for i in range(n):
        current = table.raw(i)
        if current < previous:
            break
        previous = current
    else:
        return None
    # One bytes object per name with its position behind it: half the memory of names beside integers. A zero
    # byte cannot occur in a name, so it ends the comparison where one name begins another.
    keys = [table.raw(i) + b"\0" + struct.pack(">Q", i) for i in range(n)]
    keys.sort()
    return np.fromiter((struct.unpack(">Q", key[-8:])[0] for key in keys), dtype=np.int64, count=n)


def duplicates(table: IndexTable) -> NDArray[np.int64]:
    """Positions, in sorted names, of all but the last of equal ones."""
    lengths = np.diff(table.offsets)
    same = np.flatnonzero(lengths[1:] == lengths[:-1])
    return np.array([i for i in same.tolist() if table.raw(i) == table.raw(i + 1)], dtype=np.int64)


def take(table: IndexTable, order: NDArray[np.int64]) -> IndexTable:
    """The entries at `order`, in that order."""
    out = bytearray()
    for i in order:
        out += table.raw(i)
    bounds = np.zeros(len(order) + 1, dtype=np.uint64)
    np.cumsum(np.diff(table.offsets)[order], out=bounds[1:])
    return IndexTable(bytes(out), bounds, {k: v[order] for k, v in table.where.items()})


def label(table: IndexTable) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Labels from the first folder of each name (sorted); −1 for names without one.

    No folders, or more loose images than images in folders: the set counts as flat and has no labels.
    """
    labels = np.full(len(table), -1, dtype=np.int32)
    classes: list[str] = []
    current = b""
    for i in range(len(table)):
        first, slash, _ = table.raw(i).partition(b"/")
        if not slash:
            continue
        if not classes or first != current:
            current = first
            classes.append(os.fsdecode(first))
        labels[i] = len(classes) - 1
    if not classes or 2 * int((labels < 0).sum()) > len(table):
        return None, ()
    return labels, tuple(classes)


def numbered(numbers: NDArray[np.int64] | None) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Labels that came as numbers, where every image has one; classes are then '0', '1', …"""
    if numbers is None or len(numbers) == 0 or numbers.min() < 0 or numbers.max() >= MOST_CLASSES:
        return None, ()
    return numbers.astype(np.int32), tuple(str(i) for i in range(int(numbers.max()) + 1))
