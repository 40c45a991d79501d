"""Checkpoints that survive a kill between any two instructions: plain tensors, written aside, then renamed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from cuewise.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """A disk that fills up ends the block with what to do; files are written aside, so those that were whole still are."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        cause = refusal(error)
        if cause is None or cause.errno not in FULL:
            raise
        raise UserError(
            f"{folder}: the disk is full ({os.strerror(cause.errno)}); free some space and go on with --resume "
            "from the last checkpoint"
        ) from error


def refusal(error: BaseException | None) -> OSError | None:
    """The system's refusal behind an error: torch.save tells of a full disk as of a file that is not as long as it should be."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


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
    except (OSError, RuntimeError) as error:
        part.unlink(missing_ok=True)
        cause = refusal(error)
        if cause is None or cause.errno in FULL:
            raise
        raise UserError(
            f"cannot write {file}: {cause.strerror or cause}; mend that and use --resume"
        ) from error


def write_text_atomically(text: str, file: Path) -> None:
    """The same for text."""
    part = file.with_name(file.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


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
