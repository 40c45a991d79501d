"""Checkpoints that survive a kill between any two instructions: plain tensors, written aside, then renamed."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from cuewise.errors import UserError
from cuewise.files import FULL, system_error, write_error, writing


def write_atomically(content: Any, file: Path) -> None:
    """torch.save to a file beside it, flushed to disk, then renamed: a reader sees the old one or the new one."""
    try:
        with writing(file) as handle:
            torch.save(content, handle)
    except (OSError, RuntimeError) as error:
        cause = system_error(error)
        if cause is None or cause.errno in FULL:
            raise
        raise write_error(cause, file, "use --resume") from error


KEYS = ("format", "step", "total", "classes", "config", "method", "optimizer")  # what every checkpoint holds


def read_checkpoint(file: Path, keys: Sequence[str] = KEYS) -> dict[str, Any]:
    """A checkpoint whose every byte is as it was written: tensors and plain values only, nothing in the file is run."""
    again = "start again with --overwrite"
    if not file.is_file() or not file.stat().st_size:
        raise UserError(f"the checkpoint {file} is missing or empty; {again}")
    try:
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()  # compares the checksum of every part
        if damaged is not None:
            raise zipfile.BadZipFile(f"{damaged} does not match its checksum")
        content: Any = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        why = str(error) if isinstance(error, zipfile.BadZipFile) else type(error).__name__
        raise UserError(f"the checkpoint {file} is damaged ({why}); {again}") from error
    if not isinstance(content, dict) or any(key not in content for key in keys):
        raise UserError(f"{file} is not a checkpoint of this version of cuewise; {again}")
    return content
