"""What an interrupted audit resumes from: finished rows of a pass and finished audits, each written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.files import write_text, writing
from cuewise.folders import read_mark

FOLDER = "unfinished"
MARK = ".cuewise-audit"  # a folder of that name without it is the user's
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


@dataclass
class Rows:
    """Images of a pass up to (not including) `upto`: features and answers of each viewer, one row per readable image."""

    upto: int
    index: NDArray[np.int64]
    features: list[NDArray[np.float32]]
    answers: list[NDArray[np.int64]]
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @staticmethod
    def nothing(upto: int, count: int, skipped: list[tuple[str, str]]) -> Rows:
        """A stretch in which no image could be read, for `count` viewers."""
        none = np.empty(0, np.int64)
        return Rows(upto, none, [np.empty((0, 0), np.float32)] * count, [none.reshape(0, 0)] * count, skipped)


class Saved:
    """The folder OUT/unfinished; it goes when the audit is done. `started` is called when there is something to resume."""

    def __init__(self, out: Path, started: Callable[[], None] = lambda: None) -> None:
        self.folder, self.started = out / FOLDER, started

    def rows(self, key: str) -> list[Rows]:
        """The rows of pass `key` that are there, from the first image on without a gap."""
        found: list[Rows] = []
        for file in sorted((self.folder / key).glob("*.npz")):
            try:
                rows = _read(file)
            except DAMAGED:
                break
            found.append(rows)
        return found

    def add(self, key: str, rows: Rows) -> Rows:
        """Keep rows that follow those already there."""
        place = self.folder / key
        file = place / f"{rows.upto:012d}.npz"
        text = np.frombuffer(json.dumps(rows.skipped).encode(), np.uint8)
        arrays: dict[str, Any] = {f"f{i}": a for i, a in enumerate(rows.features)}
        arrays |= {f"s{i}": a for i, a in enumerate(rows.answers)}
        try:
            place.mkdir(parents=True, exist_ok=True)
            with writing(file) as handle:
                np.savez(handle, index=rows.index, skipped=text, **arrays)
        except OSError as error:
            raise UserError(
                f"cannot write {file}: {error.strerror or error}; free some space and give the same command again"
            ) from error
        self.started()
        return rows

    def finding(self, model: str, audit: str, key: str) -> dict[str, Any] | None:
        """A finished audit, if it was asked of the same model, data and settings."""
        try:
            content: dict[str, Any] = json.loads(self._file(model, audit).read_text(encoding="utf-8"))
        except DAMAGED:
            return None
        return content["finding"] if content.get("key") == key else None

    def keep(self, model: str, audit: str, key: str, finding: Any) -> None:
        """Note a finished audit."""
        self.folder.mkdir(parents=True, exist_ok=True)
        scores = [{**s.as_dict(), "draws": s.draws} for s in finding.scores]
        content = {"key": key, "finding": {**asdict(finding), "scores": scores}}
        write_text(self._file(model, audit), json.dumps(content, ensure_ascii=False))
        self.started()

    def _file(self, model: str, audit: str) -> Path:
        safe = re.sub(r"[^\w.-]", "-", model)[:80]
        digest = hashlib.sha256(model.encode("utf-8", "surrogateescape")).hexdigest()  # `a b` is not `a-b`
        return self.folder / f"{safe}-{digest[:8]}--{audit}.json"

    def begin(self) -> None:
        """Mark the folder as an audit under way."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MARK).touch()

    def clear(self) -> None:
        """The audit is done."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)


def unfinished(out: Path) -> bool:
    """Whether a folder holds an audit that was interrupted."""
    mark = read_mark(out)
    if "phase" in mark:  # killed before it had started: what it was to replace comes back
        mark = mark.get("before") or {}
    if mark.get("kind") == "audit":
        return not mark.get("finished")
    return (out / FOLDER / MARK).is_file()


def _read(file: Path) -> Rows:
    with np.load(file, allow_pickle=False) as content:
        count = sum(name.startswith("f") for name in content.files)
        skipped: Sequence[Any] = json.loads(content["skipped"].tobytes())
        return Rows(
            int(file.stem),
            content["index"],
            [content[f"f{i}"] for i in range(count)],
            [content[f"s{i}"] for i in range(count)],
            [(str(n), str(w)) for n, w in skipped],
        )
