"""Checkpoints that survive a kill between any two instructions: plain tensors, written aside, then renamed."""

from __future__ import annotations

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


def read_checkpoint(file: Path) -> dict[str, Any]:
    """Tensors and plain values only; nothing in the file is run."""
    try:
        content: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(
            f"cannot read the checkpoint {file}: {str(error).splitlines()[0]}. Start again with --overwrite"
        ) from error
    return content
