"""The directory at the end of a zip, read without keeping an object for each member."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from cuewise.errors import UserError

ENTRY = 46  # bytes of a line of the directory before its name
SMALL = 0xFFFFFFFF  # in a field of the old format: the number stands in the 64-bit extra field


class Member(NamedTuple):
    """One line of a zip's directory."""

    name: bytes
    flags: int
    method: int
    crc: int
    stored: int
    size: int
    header: int


def members(data: mmap.mmap, path: str) -> Iterator[Member]:
    """The members in the directory's order, with names made safe: relative, forward slashes, no `..`."""
    at, count = _locate(data, path)
    for _ in range(count):
        if data[at : at + 4] != b"PK\x01\x02" or at + ENTRY > len(data):
            raise UserError(f"{path}: the archive's directory is damaged; make or fetch the archive again")
        flags, method, crc, stored, size, n, extra, comment, header = struct.unpack_from(
            "<HH4xIIIHHH8xI", data, at + 8
        )
        raw = data[at + ENTRY : at + ENTRY + n]
        if SMALL in (stored, size, header):
            stored, size, header = _large(data[at + ENTRY + n : at + ENTRY + n + extra], stored, size, header)
        yield Member(safe_name(raw, utf8=bool(flags & 0x800)), flags, method, crc, stored, size, header)
        at += ENTRY + n + extra + comment


def safe_name(raw: bytes, *, utf8: bool = True) -> bytes:
    """A member's name as a relative path that stays below its root, whatever the archive says."""
    name = raw if utf8 or raw.isascii() else os.fsencode(raw.decode("cp437"))
    name = name.replace(b"\\", b"/")
    if name.startswith(b"/") or b"./" in name or b"//" in name:
        tail = b"/" if name.endswith(b"/") else b""
        name = b"/".join(part for part in name.split(b"/") if part not in (b"", b".", b"..")) + tail
    return name


def _locate(data: mmap.mmap, path: str) -> tuple[int, int]:
    """Where the directory begins and how many members it has."""
    end = data.rfind(b"PK\x05\x06", max(0, len(data) - 65_557))
    if end < 0 or end + 22 > len(data):
        raise UserError(f"{path} is not a complete zip archive; make or fetch it again")
    count, size, at = struct.unpack_from("<HII", data, end + 10)
    if data[max(0, end - 20) : end][:4] == b"PK\x06\x07":  # 64-bit archive
        (place,) = struct.unpack_from("<Q", data, end - 12)
        if place + 56 > len(data) or data[place : place + 4] != b"PK\x06\x06":
            raise UserError(f"{path}: the archive's directory is damaged; make or fetch the archive again")
        count, size, at = struct.unpack_from("<QQQ", data, place + 32)
    if at + size > end:
        raise UserError(f"{path} is not a complete zip archive; make or fetch it again")
    return at, count


def _large(extra: bytes, stored: int, size: int, header: int) -> tuple[int, int, int]:
    """The 64-bit numbers (in the order size, stored, header) that stand in for those that did not fit."""
    at = 0
    while at + 4 <= len(extra):
        tag, n = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            numbers = list(struct.unpack_from(f"<{min(n, len(extra) - at - 4) // 8}Q", extra, at + 4))
            size = numbers.pop(0) if size == SMALL and numbers else size
            stored = numbers.pop(0) if stored == SMALL and numbers else stored
            header = numbers.pop(0) if header == SMALL and numbers else header
            break
        at += 4 + n
    return stored, size, header
