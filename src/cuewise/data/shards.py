"""Tar shards of images: the places of all members are listed once, then each image is one read."""

from __future__ import annotations

import os
import tarfile
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from cuewise.data import cache
from cuewise.data.archive import wanted
from cuewise.data.decode import BrokenImage
from cuewise.data.headers import HEAD, complaint
from cuewise.data.index import Builder, Index
from cuewise.data.placed import PlacedFile
from cuewise.data.source import Listed
from cuewise.data.zip_directory import safe_name
from cuewise.errors import UserError


class Shards(Listed):
    """Images in one tar or several; folders inside them are classes, as in a folder.

    Where two shards hold the same name, the shard's name is put behind both. Without folders, whole numbers in
    `.cls` files beside the images (WebDataset's way) are the labels.
    """

    kind = "tar"

    def __init__(self, paths: Sequence[str]) -> None:
        self.files = [PlacedFile(path) for path in paths]
        shown = paths[0] if len(paths) == 1 else f"{paths[0]} … {paths[-1]}"
        super().__init__(shown, index_shards(paths))

    def read(self, i: int) -> bytes:
        where = self.index.where
        size = int(where["size"][i])
        data = self.files[where["shard"][i]].pread(size, int(where["at"][i]))
        if len(data) != size:
            raise BrokenImage(self.name(i), "cut off at the end of its tar")
        return data


def index_shards(paths: Sequence[str]) -> Index:
    """The index of all shards, from the cache where size and time of each are the same."""
    key = "\0".join(["tar", *(os.path.abspath(path) for path in paths)])
    stamps = [cache.file_stamp(path) for path in paths]
    found = cache.load(key)
    if found is not None and found[1]["files"] == stamps:
        taken = found[1]["taken"]
        if all(cache.settled(taken, changed) for _, changed in stamps):
            return found[0]
    taken = time.time_ns()
    builder = Builder("shard", "at", "size", "cls")
    for shard, path in enumerate(paths):
        with open(path, "rb") as file:
            _add_shard(file, path, shard, builder)
    index = builder.finish(rename=lambda name, shard: _distinguish(name, paths[shard]))
    cache.save(key, index, {"taken": taken, "files": stamps})
    return index


class Headers:
    """A tar as tarfile sees it: it reads names and headers only, never more than a megabyte at once."""

    def __init__(self, file: BinaryIO) -> None:
        self.tell, self.seek, self.name = file.tell, file.seek, file.name
        self._read = file.read

    def read(self, size: int) -> bytes:
        if not 0 <= size <= 1 << 20:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._read(size)


def _distinguish(name: bytes, path: str) -> bytes:
    """'dog/rex.jpg' → 'dog/rex (shards-001).jpg'."""
    stem, dot, ending = name.rpartition(b".")
    shard = os.fsencode(os.path.splitext(os.path.basename(path))[0])
    return stem + b" (" + shard + b")" + dot + ending


def _add_shard(file: BinaryIO, path: str, shard: int, builder: Builder) -> None:
    before = len(builder)
    try:
        # Only plain tars: in a compressed one, a place in the file says nothing.
        headers: Any = Headers(file)
        with tarfile.open(fileobj=headers, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            _add_members(tar, file, shard, builder)
    except (
        tarfile.TarError,
        EOFError,
        ArithmeticError,
        LookupError,
        ValueError,
        OSError,
        RecursionError,
    ) as error:
        if len(builder) == before:
            raise UserError(f"{path} is not a plain tar ({error}); make or fetch it again") from None
        builder.skip(os.fsencode(os.path.basename(path)), f"damaged tar, read only in part ({error})")


def _add_members(tar: tarfile.TarFile, file: BinaryIO, shard: int, builder: Builder) -> None:
    """Images, and the numbers in `.cls` files that stand beside them under the same stem."""
    image_stem, number_stem, number = b"", b"", -1
    end, last = os.fstat(file.fileno()).st_size, -1
    while (member := tar.next()) is not None:
        if member.size < 0 or member.offset <= last:
            raise tarfile.ReadError(f"a member of {member.size} bytes")
        last = member.offset
        tar.members.clear()  # type: ignore[attr-defined]  # else it keeps an object for each
        name = safe_name(os.fsencode(member.name))
        stem = name.rpartition(b".")[0]
        if name.endswith(b".cls") and member.isreg():
            number_stem, number = stem, _number(_piece(file, member, 16))
            if image_stem == stem:
                builder.columns["cls"][-1] = number
        if not wanted(name):
            continue
        whole = member.isreg() and not member.issparse()
        why = complaint(member.size, _piece(file, member, HEAD)) if whole else "a link, not a file"
        if why is None and member.offset_data + member.size > end:
            why = "cut off at the end of its tar"
        if why is not None:
            builder.skip(name, why)
            continue
        builder.add(name, shard, member.offset_data, member.size, number if number_stem == stem else -1)
        image_stem = stem


def _number(text: bytes) -> int:
    text = text.strip()
    return int(text) if text.isdigit() else -1


def _piece(file: BinaryIO, member: tarfile.TarInfo, size: int) -> bytes:
    return os.pread(file.fileno(), min(size, member.size), member.offset_data)
