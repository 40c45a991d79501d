"""Checkpoints that survive a kill between any two instructions: plain tensors, written aside, then renamed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from cuewise.errors import UserError


def write_atomically(content: Any, file: Path) -> None:
    """torch.save to a file beside it, flushed to disk, then renamed: a reader sees the old one or the new one."""
    part = file.with_name(file.name + ".part")
    try:
        with part.open("wb") as handle:
            torch.save(content, handle)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(
            f"cannot write {file}: {error.strerror or error}; free some space and use --resume"
        ) from error


def write_text_atomically(text: str, file: Path) -> None:
    """The same for text."""
    part = file.with_name(file.name + ".part")
    with part.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    part.replace(file)


def sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_checkpoint(file: Path) -> dict[str, Any]:
    """Tensors and plain values only; nothing in the file is run."""
    try:
        content: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(
            f"cannot read the checkpoint {file}: {str(error).splitlines()[0]}. Start again with --overwrite"
        ) from error
    return content
