"""A zip of images: its directory is read once, then each image is one read at a known place."""

from __future__ import annotations

import mmap
import os
import struct
import time
import zlib
from collections.abc import Iterator

from cuewise.data import cache
from cuewise.data.decode import BrokenImage
from cuewise.data.folder import ignored
from cuewise.data.headers import HEAD, complaint, has_image_ending
from cuewise.data.index import Builder, Index
from cuewise.data.placed import PlacedFile
from cuewise.data.source import Listed
from cuewise.data.zip_directory import Member, members
from cuewise.errors import UserError

STORED, DEFLATED = 0, 8
LOCAL = 30  # bytes of a member's own header before its name


class Zip(Listed):
    """Images in a zip, or in one folder of it; names are relative to that folder."""

    kind = "zip"

    def __init__(self, path: str, inside: str = "") -> None:
        self.file = PlacedFile(path)
        super().__init__(f"{path}/{inside}" if inside else path, index_zip(path, inside))

    def read(self, i: int) -> bytes:
        where = self.index.where
        stored, size = int(where["stored"][i]), int(where["size"][i])
        data = self.file.pread(stored, int(where["at"][i]))
        try:
            if where["method"][i] == DEFLATED:
                data = zlib.decompressobj(-15).decompress(data, size + 1)  # one more would already be a lie
        except zlib.error as error:
            raise BrokenImage(self.name(i), f"damaged inside the archive ({error})") from None
        if len(data) != size or zlib.crc32(data) != int(where["crc"][i]):
            raise BrokenImage(self.name(i), "damaged inside the archive (checksum differs)")
        return data


def index_zip(path: str, inside: str) -> Index:
    """The index of a zip, from the cache where size and time of the archive are the same."""
    key = f"zip\0{os.path.abspath(path)}\0{inside}"
    stamp = cache.file_stamp(path)
    found = cache.load(key)
    if found is not None and found[1]["file"] == stamp and cache.settled(found[1]["taken"], stamp[1]):
        return found[0]
    taken = time.time_ns()
    builder = Builder("at", "stored", "size", "method", "crc")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise UserError(f"{path} is empty; make or fetch the archive again")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _add_members(data, path, inside, builder)
    index = builder.finish()
    cache.save(key, index, {"taken": taken, "file": stamp})
    return index


def _add_members(data: mmap.mmap, path: str, inside: str, builder: Builder) -> None:
    prefix = os.fsencode(inside.strip("/")) + b"/" if inside.strip("/") else b""
    root = prefix
    if not any(member.name.startswith(prefix) for member in members(data, path)) or not prefix:
        root = common_root(member.name for member in members(data, path)) + prefix
    for member in members(data, path):
        name = member.name
        if not name.startswith(root) or not wanted(name[len(root) :]):
            continue
        name = name[len(root) :]
        why, at = _inspect(data, member)
        if why is None:
            builder.add(name, at, member.stored, member.size, member.method, member.crc)
        else:
            builder.skip(name, why)


def wanted(name: bytes) -> bool:
    """Whether a member's name is an image's, with nothing hidden on the way to it."""
    return has_image_ending(name) and not any(ignored(part) for part in name.split(b"/") if part != b"..")


def common_root(names: Iterator[bytes]) -> bytes:
    """The one folder that wraps all images of an archive made by zipping a folder, or nothing.

    Only where there are further folders in it: a single folder of images is a class like any other.
    """
    root, nested = None, False
    for name in names:
        if not wanted(name):
            continue
        first, slash, rest = name.partition(b"/")
        if not slash or root not in (None, first):
            return b""
        root, nested = first, nested or b"/" in rest
    return root + b"/" if root is not None and nested else b""


def _inspect(data: mmap.mmap, member: Member) -> tuple[str | None, int]:
    """Why the member cannot be used, and where its bytes begin."""
    if member.flags & 1:
        return "encrypted: unpack the archive with its password", 0
    if member.method not in (STORED, DEFLATED):
        return f"compressed by method {member.method}: pack the archive with plain deflate", 0
    head = data[member.header : member.header + LOCAL]
    if member.header + LOCAL > len(data) or len(head) < LOCAL or head[:4] != b"PK\x03\x04":
        return "damaged inside the archive (no header where the directory says)", 0
    names, extra = struct.unpack_from("<HH", head, 26)
    at = member.header + LOCAL + names + extra
    if at + member.stored > len(data):
        return "damaged inside the archive (cut off)", 0
    if member.method == STORED and member.size != member.stored:
        return "damaged inside the archive (two sizes)", 0
    first = data[at : at + min(member.stored, HEAD if member.method == STORED else 512)]
    if member.method == DEFLATED:
        try:
            first = zlib.decompressobj(-15).decompress(first, HEAD)
        except zlib.error as error:
            return f"damaged inside the archive ({error})", 0
    return complaint(member.size, first), at
