"""Names of written files: inside the folder, distinct even where case does not count, never too long."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterable

from cuewise.data.headers import has_image_ending

LONGEST = 255  # bytes of one name on every common file system
RESERVED = 44  # of those, for what is put behind a stem: "-jpeg~1f0c2a9b.cue-conflict.webp"


def safe_stem(name: str) -> str:
    """'../dog/rex.JPG' → '_/dog/rex': relative, without its ending; no part is hidden or leads elsewhere."""
    raw = os.fsencode(name)
    if has_image_ending(raw.rpartition(b"/")[2]):
        raw = raw.rpartition(b".")[0]
    parts = [_safe_part(part) for part in raw.split(b"/") if part not in (b"", b".")] or [b"_"]
    folders = [shorten(part, LONGEST) for part in parts[:-1]]
    return os.fsdecode(b"/".join([*folders, shorten(parts[-1], LONGEST - RESERVED)]))


def _safe_part(part: bytes) -> bytes:
    if part == b"..":
        return b"_"
    part = part.replace(b"\0", b"_")
    return b"_" + part if part.startswith(b".") else part  # hidden files are no part of an image set


def shorten(part: bytes, limit: int) -> bytes:
    """At most `limit` bytes: cut between characters, with a hash of the whole behind."""
    if len(part) <= limit:
        return part
    head = part[: limit - 9]
    while head and part[len(head)] & 0xC0 == 0x80:  # in the middle of a UTF-8 character
        head = head[:-1]
    return head + b"~" + hashlib.blake2b(part, digest_size=4).hexdigest().encode()


def ending(name: str) -> str:
    """'.JPG' of 'dog/rex.JPG', or nothing where the name does not end like an image's."""
    return name[name.rindex(".") :] if has_image_ending(os.fsencode(name).rpartition(b"/")[2]) else ""


def same(path: str) -> str:
    """A key that is equal for paths which some file system takes for one."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", path).casefold())


def key(path: str) -> int:
    """`same` in eight bytes: a million of them fit in memory, and a chance meeting only lengthens a name."""
    digest = hashlib.blake2b(os.fsencode(same(path)), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Stems:
    """A stem for each of `count` names, such that the `files(stem, i)` of all differ from each other and from folders.

    The first of several that collide keeps its stem: 'a.jpg', 'a.png', 'A.jpg' → 'a', 'a-png', 'A-jpg'. Only stems that
    differ from what their name gives are stored.
    """

    def __init__(
        self, name: Callable[[int], str], count: int, files: Callable[[str, int], Iterable[str]]
    ) -> None:
        self.name = name
        self.changed: dict[int, str] = {}
        taken = folders(safe_stem(name(i)) for i in range(count))
        self.flat = False  # whether one lies in no folder
        for i in range(count):
            plain = safe_stem(name(i))
            self.flat = self.flat or "/" not in plain
            for stem in _candidates(plain, name(i)):
                keys = {key(file) for file in files(stem, i)}
                if taken.isdisjoint(keys):
                    break
            taken |= keys
            if stem != plain:
                self.changed[i] = stem

    def __getitem__(self, i: int) -> str:
        return self.changed[i] if i in self.changed else safe_stem(self.name(i))


def _candidates(stem: str, name: str) -> Iterable[str]:
    yield stem
    yield f"{stem}-{ending(name)[1:].lower() or 'image'}"
    digest = hashlib.blake2b(os.fsencode(name), digest_size=4).hexdigest()
    yield f"{stem}~{digest}"
    number = 2
    while True:  # one name several times, as joined sets may have
        yield f"{stem}~{digest}~{number}"
        number += 1


def folders(paths: Iterable[str]) -> set[int]:
    """Keys of all folders that lie above the paths."""
    found: set[int] = set()
    last = ""
    for path in paths:
        folder = path.rpartition("/")[0]
        if folder == last:
            continue
        last = folder
        while folder and (number := key(folder)) not in found:
            found.add(number)
            folder = folder.rpartition("/")[0]
    return found
