"""A folder of images, nested or flat; links are followed once, odd files are counted."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from cuewise.data import cache
from cuewise.data.decode import BrokenImage
from cuewise.data.headers import HEAD, MAX_BYTES, complaint, has_image_ending
from cuewise.data.index import Builder, Index
from cuewise.data.source import Listed

READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a pipe must not block
Key = tuple[int, int]  # device and inode of a folder
GONE = frozenset(
    [
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.ESTALE,
    ]
)  # about one file; anything else (too many open files, …) is a fault of the whole run


class Folder(Listed):
    """Images below a folder; names are relative to it."""

    kind = "folder"

    def __init__(self, path: str) -> None:
        super().__init__(path, index_folder(path))
        self.root = os.fsencode(os.path.abspath(path))

    def read(self, i: int) -> bytes:
        """The file as it lies on disk: one open, one read."""
        try:
            handle = os.open(os.path.join(self.root, self.index.raw(i)), READ)
            try:
                return _read_all(handle, self.name(i))
            finally:
                os.close(handle)
        except OSError as error:
            if error.errno not in GONE:
                raise
            raise BrokenImage(self.name(i), f"cannot be read ({os.strerror(error.errno or 0)})") from None


def _read_all(handle: int, name: str) -> bytes:
    facts = os.fstat(handle)
    size = facts.st_size
    if not stat.S_ISREG(facts.st_mode):
        raise BrokenImage(name, "not a regular file any more")
    if size > MAX_BYTES:
        raise BrokenImage(name, f"{size} bytes, of which at most {MAX_BYTES} are read")
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data
    parts = [data]  # network file systems may give less at once
    while data:
        data = os.read(handle, 1 << 20)
        parts.append(data)
    return b"".join(parts)


def index_folder(path: str) -> Index:
    """The index of a folder, from the cache where no folder in it has changed."""
    root = os.fsencode(os.path.abspath(path))
    key = f"folder\0{os.fsdecode(root)}"
    found = cache.load(key)
    if found is not None and _unchanged(root, found[1]):
        return found[0]
    taken = time.time_ns()
    builder, folders = Builder(), list[tuple[str, int]]()
    for name in walk(root, builder, folders):
        why = check_file(os.path.join(root, name))
        if why is None:
            builder.add(name)
        else:
            builder.skip(name, why)
    index = builder.finish()
    broken = [[s.path, *_facts(os.path.join(root, os.fsencode(s.path)))] for s in index.skipped]
    cache.save(key, index, {"taken": taken, "folders": folders, "broken": broken})
    return index


def _unchanged(root: bytes, stamp: dict[str, Any]) -> bool:
    """Adding, removing or renaming changes a folder's time; repairing a skipped file changes the file's."""
    for name, changed in stamp["folders"]:
        size, now = _facts(os.path.join(root, os.fsencode(name)))
        if size < 0 or now != changed or not cache.settled(stamp["taken"], changed):
            return False
    return all(_facts(os.path.join(root, os.fsencode(name))) == facts for name, *facts in stamp["broken"])


def _facts(path: bytes) -> list[int]:
    try:
        return cache.file_stamp(path)
    except OSError:
        return [-1, -1]


def check_file(path: bytes) -> str | None:
    """Why a file with an image's ending cannot be used, from its first bytes; None where it can."""
    try:
        handle = os.open(path, READ)
        try:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                return "not a regular file"
            return complaint(facts.st_size, os.read(handle, HEAD))
        finally:
            os.close(handle)
    except OSError as error:
        if os.path.islink(path) and error.errno in (errno.ENOENT, errno.ELOOP):
            return "broken symbolic link"
        if error.errno not in GONE | {errno.ENXIO}:
            raise
        return f"cannot be read ({os.strerror(error.errno or 0)})"


def walk(root: bytes, builder: Builder, folders: list[tuple[str, int]]) -> Iterator[bytes]:
    """Names with an image's ending below root, in byte order; notes each folder's change time in `folders`."""
    seen: set[Key] = set()
    real: set[Key] | None = None  # folders that are reached without a link; listed only when a link turns up
    stack = [iter([b""])]
    while stack:
        name = next(stack[-1], None)
        if name is None:
            stack.pop()
            continue
        if name and not name.endswith(b"/"):
            yield name
            continue
        full = os.path.join(root, name[:-1]) if name else root
        try:
            facts = os.stat(full)
            key = (facts.st_dev, facts.st_ino)
            if name and os.path.islink(full):
                real = real_folders(root) if real is None else real
                if key in real:
                    builder.skip(name[:-1], "link to a folder of this set, which is read in its own place")
                    continue
            if key in seen:
                builder.skip(name[:-1], "link to a folder that is read already")
                continue
            entries = _entries(full, name)
        except OSError as error:
            builder.skip(name[:-1], f"folder cannot be read ({os.strerror(error.errno or 0)})")
            continue
        seen.add(key)
        folders.append((os.fsdecode(name), facts.st_mtime_ns))
        stack.append(iter(entries))


def _entries(full: bytes, prefix: bytes) -> list[bytes]:
    """Sorted names in one folder; folders end in a slash, which also sorts them where their contents belong."""
    found = []
    with os.scandir(full) as entries:
        for entry in entries:
            name = entry.name
            if ignored(name):
                continue
            if _is_folder(entry):
                found.append(prefix + name + b"/")
            elif has_image_ending(name):
                found.append(prefix + name)
    if any(name.endswith(b"/") for name in found) and os.path.exists(os.path.join(full, b"make.json")):
        found = [
            name for name in found if name != prefix + b"preview.png"
        ]  # of `cuewise make`, beside its classes
    found.sort()
    return found


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link onto itself
        return False


def ignored(part: bytes) -> bool:
    """Hidden files and what macOS and network drives leave in folders and archives."""
    return part.startswith(b".") or part in (b"__MACOSX", b"@eaDir", b"lost+found", b"$RECYCLE.BIN")


def real_folders(root: bytes) -> set[Key]:
    """Device and inode of root and of every folder below it that is reached without a link."""
    facts = os.stat(root)
    found, todo = {(facts.st_dev, facts.st_ino)}, [root]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if not ignored(entry.name) and entry.is_dir(follow_symlinks=False):
                        facts = entry.stat(follow_symlinks=False)
                        found.add((facts.st_dev, facts.st_ino))
                        todo.append(entry.path)
        except OSError:
            continue  # reported when the walk itself comes there
    return found
