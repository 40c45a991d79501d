"""A large file of which pieces are read at known places."""

from __future__ import annotations

import os

from cuewise.data import cache
from cuewise.errors import UserError


class PlacedFile:
    """A file read at given places; opened again in each process and after pickling, safe with threads."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.stamp = cache.file_stamp(self.path)
        self._open: tuple[int, int] | None = None  # process, file descriptor

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "stamp": self.stamp, "_open": None}

    def __del__(self) -> None:
        opened = getattr(self, "_open", None)
        if opened is not None and opened[0] == os.getpid():
            os.close(opened[1])

    def pread(self, size: int, at: int) -> bytes:
        """`size` bytes from `at`; fewer only at the end of the file."""
        opened = self._open
        if opened is None or opened[0] != os.getpid():
            opened = self._open = (os.getpid(), self._descriptor())
        data = os.pread(opened[1], size, at)
        while len(data) < size:
            more = os.pread(opened[1], size - len(data), at + len(data))
            if not more:
                break
            data += more
        return data

    def _descriptor(self) -> int:
        handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        facts = os.fstat(handle)
        if [facts.st_size, facts.st_mtime_ns] != self.stamp:
            os.close(handle)
            raise UserError(f"{self.path} changed while it was in use; start again")
        return handle
