"""The folder that is written: images appear whole or not at all, and progress is recoverable after a crash.

DST/class/name.png …      or DST/shards-000.tar …
DST/manifest.jsonl        written last, in the order of the source
DST/make.json             what is being made, compared on resume
DST/.cuewise/             journals, files in the making, and images that wait for their shard
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cuewise.folders import HIDDEN
from cuewise.makers.journal import Journal, Records
from cuewise.makers.layout import Layout
from cuewise.makers.render import Made

AGAIN = "run the same command again to resume"


class Store:
    """Where files of a layout go; picklable, one for all processes."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.folder, self.layout = folder, layout
        self.hidden = folder / HIDDEN
        self.journals, self.aside, self.staged = (
            self.hidden / part for part in ("journal", "aside", "staged")
        )

    def prepare(self) -> None:
        """Make the folders, and clear away what an earlier run left half done."""
        shutil.rmtree(self.aside, ignore_errors=True)
        for path in (self.journals, self.aside):
            path.mkdir(parents=True, exist_ok=True)

    def journal(self, name: str) -> Journal:
        """A new journal; `name` is unique among all runs and processes."""
        return Journal(self.journals / f"{name}.jsonl")

    def records(self) -> Records:
        """What all journals say."""
        return Records(self.journals.glob("*.jsonl"), len(self.layout))

    def path(self, i: int, k: int, name: str) -> Path:
        """Where file k of item i lies: under its own name, or waiting for its shard."""
        if self.layout.shard_size:
            return self.staged / str(i // self.layout.shard_size) / f"{i}-{k}"
        return self.folder / name

    def put(self, made: Made, journal: Journal) -> None:
        """Write aside, note in the journal, then rename: what is visible is whole and noted."""
        moves = []
        for k, (name, data) in enumerate(made.files):
            aside = self.aside / f"{os.getpid()}-{made.index}-{k}"
            aside.write_bytes(data)
            moves.append((aside, self.path(made.index, k, name)))
        journal.add(made)
        for aside, path in moves:
            try:
                os.replace(aside, path)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(aside, path)

    def done(self, i: int, records: Records) -> bool:
        """Whether item i needs no more work; broken sources of a tree are tried again, in case they were repaired."""
        if i not in records:
            return False
        if self.layout.shard_size and self.packed(i // self.layout.shard_size):
            return True
        rows = records.rows(i)
        if rows[0]["name"] is None:
            return bool(self.layout.shard_size)
        files = [(k, row) for k, row in enumerate(rows) if row["bytes"] is not None]
        return all(_has(self.path(i, k, row["name"]), row["bytes"]) for k, row in files)

    def packed(self, shard: int) -> bool:
        """Whether the tar exists; it appears only when it is whole."""
        return (self.folder / self.layout.shard_name(shard)).exists()

    def tidy(self) -> None:
        """Everything is in the manifest: remove the rest."""
        for path in (self.aside, self.staged, self.journals):
            shutil.rmtree(path, ignore_errors=True)


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
