"""What a folder holds: `make.json`, compared when a run resumes, and removed with all it made by --overwrite."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.files import write_bytes
from cuewise.makers.manifest import MANIFESTS, read_rows

STATE = "make.json"


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """As it will be read back: tuples are lists."""
    return json.loads(json.dumps(content))


def read_state(folder: Path) -> dict[str, Any] | None:
    """What the folder says it holds; None where it is new."""
    try:
        return json.loads((folder / STATE).read_bytes())
    except FileNotFoundError:
        pass
    except (ValueError, OSError) as error:
        raise UserError(f"{folder / STATE} cannot be read ({error}); choose another folder") from None
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose a folder to write")
    if folder.exists() and any(entry.name != ".cuewise" for entry in os.scandir(folder)):
        raise UserError(
            f"{folder} is not empty and was not written by cuewise make; choose a new folder (nothing was changed)"
        )
    return None


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write make.json, whole or not at all."""
    write_bytes(folder / STATE, json.dumps(state, indent=2).encode() + b"\n")


def refuse_change(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """An error that names the first difference between what the folder holds and what is asked."""
    for key, was, now in _differences(old, new):
        raise UserError(
            f"{folder} was started with {key} = {_short(was)}, now it is {_short(now)}; "
            "give the same settings to resume, --overwrite to start again, or another folder"
        )


def _differences(
    old: dict[str, Any], new: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for key in [*new, *(k for k in old if k not in new)]:
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _differences(was, now, f"{prefix}{key}.")
        else:
            yield prefix + key, was, now


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else text[:77] + "…"


def check_places(folder: Path, dataset: Dataset) -> None:
    """Neither may lie in the other: results would become sources, or sources be written over."""
    target = os.path.realpath(folder)
    for source in dataset.fingerprint()["sources"]:
        place = os.path.realpath(str(source["data"]))
        if not os.path.exists(place):
            continue
        if os.path.commonpath([target, place]) in (target, place) and os.path.isdir(place):
            raise UserError(
                f"one of {folder} and its source {source['data']} contains the other; choose another folder"
            )
        if os.path.isfile(place) and os.path.commonpath([target, place]) == target:
            raise UserError(f"the source {source['data']} lies in {folder}; choose another folder")


def remove_made(folder: Path) -> None:
    """Remove what cuewise made there, by its own records, and nothing else; make.json goes last."""
    hidden = folder / ".cuewise"
    names = {row["name"] for row in _all_rows(folder) if row.get("name") and row.get("bytes") is not None}
    names |= {table for table in [(read_state(folder) or {}).get("table")] if table}
    names |= {row["shard"] for row in _all_rows(folder) if row.get("shard")}
    for name in sorted(names, reverse=True):
        path = folder / name
        if os.path.isabs(name) or ".." in path.parts:  # not ours, whatever the manifest says
            continue
        with suppress(OSError):
            path.unlink()
        for parent in path.parents:
            if parent == folder:
                break
            with suppress(OSError):
                parent.rmdir()  # only where it is empty
    for path in (folder / "preview.png", *(folder / name for name in MANIFESTS.values())):
        path.unlink(missing_ok=True)
    shutil.rmtree(hidden / "journal", ignore_errors=True)
    shutil.rmtree(hidden / "staged", ignore_errors=True)
    (folder / STATE).unlink(missing_ok=True)


def _all_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for name in MANIFESTS.values():
        yield from read_rows(folder / name)
    for path in sorted((folder / ".cuewise" / "journal").glob("*.jsonl")):
        with open(path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield from json.loads(line)["rows"]
