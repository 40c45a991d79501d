"""What has been made so far: one JSON line per item, appended before its files become visible.

Each process writes a file of its own, so a line cut off by `kill -9` can only be the last of its file. A line alone
proves nothing: an item is done when it has a line and its files exist in the size that the line gives.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.makers.render import Made

_NUMBER = re.compile(rb'\{"item": (\d+)')


def to_line(content: Any) -> bytes:
    """JSON on one line, readable where it can be: names that are no UTF-8 are escaped."""
    text = json.dumps(content, ensure_ascii=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(content).encode() + b"\n"


class Journal:
    """Appends to one file; the file appears with its first line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = -1

    def add(self, made: Made) -> None:
        """Note an item: one write, so that lines are whole."""
        if self.handle < 0:
            self.handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        rest = to_line({"item": made.index, "rows": made.rows})
        while rest:  # a full disk may take a part and then refuse the rest
            rest = rest[os.write(self.handle, rest) :]

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class Records:
    """The lines of some journals, found by item; lines stay on disk."""

    def __init__(self, files: Iterable[Path], count: int) -> None:
        self.files = [path for path in sorted(files) if path.exists()]
        self.file = np.full(count, -1, np.int32)  # of the last whole line for each item
        self.at = np.zeros(count, np.int64)
        for number, path in enumerate(self.files):
            for at, item in _lines(path):
                if item < count:
                    self.file[item], self.at[item] = number, at
        self._open: dict[int, Any] = {}

    def __contains__(self, item: int) -> bool:
        return bool(self.file[item] >= 0)

    def rows(self, item: int) -> list[dict[str, Any]]:
        """The rows of an item that has a line."""
        number = int(self.file[item])
        if number not in self._open:
            if len(self._open) >= 64:
                self._open.pop(next(iter(self._open))).close()
            self._open[number] = open(self.files[number], "rb")  # noqa: SIM115  # closed in `close`
        handle = self._open[number]
        handle.seek(int(self.at[item]))
        return json.loads(handle.readline())["rows"]

    def close(self) -> None:
        """Close the files."""
        for handle in self._open.values():
            handle.close()
        self._open.clear()


def _lines(path: Path) -> Iterator[tuple[int, int]]:
    """(place, item) of each whole line."""
    with open(path, "rb") as file:
        at = 0
        for line in file:
            found = _NUMBER.match(line)
            if found and line.endswith(b"\n"):
                yield at, int(found[1])
            at += len(line)
