"""Finished indexes on disk, so that a large set is listed once; a damaged entry counts as missing."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.compiled import cache_root
from cuewise.data.index import Index, Skipped, fingerprint
from cuewise.files import writing

VERSION = 1
SETTLED = 2_000_000_000  # ns: anything younger when it was listed may have changed within one clock tick


def cache_path(key: str, ending: str = "npz") -> Path:
    """The file for `key`, which says kind and place of the set."""
    digest = hashlib.sha256(f"{VERSION}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()
    return cache_root() / f"index-{digest[:32]}.{ending}"


def load(key: str) -> tuple[Index, dict[str, Any]] | None:
    """The index stored under `key` and the stamp it was stored with, or None."""
    try:
        with np.load(cache_path(key), allow_pickle=False) as file:
            meta = json.loads(file["meta"].tobytes())
            blob, offsets = file["blob"].tobytes(), file["offsets"]
            labels = file["labels"] if "labels" in file.files else None
            where = {k[6:]: file[k] for k in file.files if k.startswith("where_")}
        classes = tuple(meta["classes"])
        if fingerprint(blob, offsets, labels, classes) != meta["hash"]:
            return None
        skipped = tuple(Skipped(path, why) for path, why in meta["skipped"])
        return Index(blob, offsets, where, labels, classes, skipped, meta["hash"]), meta["stamp"]
    except Exception:  # missing, half written, from another version: listing again fixes all of them
        return None


def save(key: str, index: Index, stamp: dict[str, Any]) -> None:
    """Store the index; a read-only or full disk costs only the time of the next listing."""
    meta = {"classes": index.classes, "hash": index.hash, "skipped": index.skipped, "stamp": stamp}
    arrays: dict[str, Any] = {
        "meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
        "blob": np.frombuffer(index.blob, dtype=np.uint8),
        "offsets": index.offsets,
        **{f"where_{k}": v for k, v in index.where.items()},
    }
    if index.labels is not None:
        arrays["labels"] = index.labels
    try:
        path = cache_path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path, shared=True, sync=False) as file:
            np.savez(file, **arrays)
    except OSError:
        pass


def settled(taken: int, changed: int) -> bool:
    """Whether something last changed at `changed` was at rest when it was listed at `taken` (both ns)."""
    return taken - changed > SETTLED


def file_stamp(path: str | bytes) -> list[int]:
    """Size and change time: what decides whether an archive is still the one that was listed."""
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns]
