"""Files that appear whole or not at all, and what the user reads when a disk refuses them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from cuewise.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
AGAIN = "run the same command again"


@contextmanager
def aside(file: Path, *, shared: bool = False, sync: bool = True) -> Iterator[Path]:
    """A path beside `file` that takes its name when the block ends well and is removed otherwise.

    shared: several processes may write the same file at once. sync: the content survives a power cut.
    """
    part = file.with_name(f"{file.name}.{os.urandom(6).hex()}.tmp" if shared else file.name + ".part")
    try:
        yield part
        if sync:
            _sync(part)
        os.replace(part, file)
        if sync:
            with suppress(OSError):  # some file systems cannot flush a folder
                _sync(file.parent)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.filename == str(part):
            error.filename, error.filename2 = str(file), None  # what the caller knows
        raise


@contextmanager
def hold_file(file: Path, overwrite: bool) -> Iterator[None]:
    """Hold a file that a command writes: one that exists is refused without --overwrite, and so is a second writer."""
    if file.exists() and not overwrite:
        raise UserError(f"{file} exists: use --overwrite or another --out")
    part = file.with_name(file.name + ".part")  # as `aside` names it
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = part.open("ab")
    except OSError as error:
        raise write_error(error, file, AGAIN) from error
    with held as handle:
        if not _lock(handle):
            raise UserError(
                f"{file} is being written by another process; wait until it ends, or name another --out"
            )
        try:
            yield
        finally:
            with suppress(OSError):
                if part.stat().st_ino == os.fstat(handle.fileno()).st_ino:  # else it is the next writer's
                    part.unlink()


def _lock(handle: BinaryIO) -> bool:
    """Whether no other process holds it; the system releases it at the end of this process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)  # a file system without locks: as before
    return True


@contextmanager
def writing(file: Path, *, shared: bool = False, sync: bool = True) -> Iterator[BinaryIO]:
    """A binary handle whose content becomes `file` when the block ends well."""
    with aside(file, shared=shared, sync=sync) as part, part.open("wb") as handle:
        yield handle


def write_bytes(file: Path, data: bytes, *, shared: bool = False, sync: bool = True) -> None:
    """Write a whole file: a reader sees the old content or the new."""
    with writing(file, shared=shared, sync=sync) as handle:
        handle.write(data)


def write_text(file: Path, text: str, *, sync: bool = True) -> None:
    """The same for UTF-8 text."""
    write_bytes(file, text.encode("utf-8"), sync=sync)


def write_json(file: Path, content: Any, *, indent: int | None = 2) -> None:
    """The same for JSON, with a line break at its end."""
    write_text(file, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object; nothing where the file is missing, damaged or holds something else."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def system_error(error: BaseException | None) -> OSError | None:
    """The system's refusal behind an error; torch.save reports a full disk as a file of the wrong length."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def write_error(error: OSError, place: Path, again: str) -> UserError:
    """What the user reads when `place` cannot be written; `again` says how to continue."""
    # a folder could not be made because a file has its name
    number = errno.ENOTDIR if error.errno == errno.EEXIST else error.errno
    why = os.strerror(number) if number else str(error)
    if error.errno in FULL:
        return UserError(f"{place}: the disk is full ({why}); free some space and {again}")
    return UserError(f"{place} cannot be written ({why}); fix that and {again}")


def refuse_unwritable(file: Path, shown: Path) -> None:
    """An error where no file can be written in the folder of `file`, which the user calls `shown`."""
    trial = file.with_name(f"{file.name}.{os.urandom(6).hex()}.tmp")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise write_error(error, shown, AGAIN) from error


def refuses(error: OSError, place: Path) -> bool:
    """Whether the system refused a place that a command writes: the place itself, what leads there, or a file in it."""
    if not isinstance(error.filename, str):
        return False
    refused, whole = Path(os.path.abspath(error.filename)), Path(os.path.abspath(place))
    leads_there = whole.is_relative_to(refused) and (refused == whole or not refused.is_dir())
    return leads_there or (refused.is_relative_to(whole) and error.errno in DENIED)


@contextmanager
def explain_full_disk(place: Path, again: str) -> Iterator[None]:
    """Turn a full disk into one line; other errors pass."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        cause = system_error(error)
        if cause is None or cause.errno not in FULL:
            raise
        raise write_error(cause, place, again) from error
