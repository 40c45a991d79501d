"""Output folders that one process at a time writes, and that --overwrite replaces only where cuewise wrote them.

OUT/.cuewise/mark.json   the kind of content and the version of cuewise that wrote it; --overwrite deletes nothing without it
OUT/.cuewise/lock        held by the writing process; the system releases it when that process ends, however it ends
OUT/.cuewise/replaced/   what --overwrite replaces, until the new content has started; put back if it never does
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cuewise.errors import UserError
from cuewise.files import read_object, write_json

HIDDEN = ".cuewise"
RESUME = "resume it with --resume, replace it with --overwrite, or name another --out"
REPLACE = "replace it with --overwrite, or name another --out"


@dataclass(frozen=True)
class Content:
    """A kind of output folder: in words, files by which one without a mark is known, and what to do if it is there."""

    words: str
    evidence: tuple[str, ...]
    advice: str = REPLACE


CONTENTS = {
    "run": Content("a run", ("config.yaml",), RESUME),
    "audit": Content("an audit", ("unfinished/.cuewise-audit",)),
    "probe": Content("a probe", ("config.json",), RESUME),
    "transfer": Content("a table of tasks", ("cells",)),
    "comparison": Content("a comparison", ()),
    "study": Content("a study", ("arms",)),
    "demo": Content("a demo", ("plain/config.yaml",)),
    "set": Content("an image set", ("make.json",)),
    "inspection": Content("an inspection", ("inspect.json",)),
}
_held: set[tuple[int, str]] = set()  # (process, lock file): the system does not refuse a process its own lock


@contextmanager
def lock_folder(folder: Path, name: str = "lock", *, wait: bool = False) -> Iterator[None]:
    """Hold a folder for this process; while another holds it, wait or refuse with an error that names that process.

    The lock belongs to the process, not to its children, so a worker that outlives it keeps nothing locked.
    """
    file = folder / HIDDEN / name
    key = (os.getpid(), os.path.realpath(file))
    if key in _held:
        raise UserError(f"{folder} is already being written by this process ({os.getpid()})")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as handle:
        if not _lock(handle, wait):
            raise UserError(_in_use(folder, handle))
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.truncate(handle.fileno(), 0)
            os.write(handle.fileno(), f"{os.getpid()} on {socket.gethostname()}".encode())
        _held.add(key)
        try:
            yield
        finally:
            _held.discard(key)


def refuse_if_locked(folder: Path, name: str = "lock") -> None:
    """An error where another process holds the folder; nothing is changed."""
    file = folder / HIDDEN / name
    if (os.getpid(), os.path.realpath(file)) in _held or not os.access(file, os.W_OK):
        return
    with file.open("r+") as handle:
        if not _lock(handle, wait=False):
            raise UserError(_in_use(folder, handle))


def _lock(handle: IO[str], wait: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return True
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        print(f"cuewise: {handle.name} cannot be locked ({error.strerror}); make sure that no other process writes there",
              file=sys.stderr)  # fmt: skip
    return True


def _in_use(folder: Path, handle: IO[str]) -> str:
    handle.seek(0)
    return f"{folder} is being written by process {handle.read() or '?'}; wait until it ends, or name another folder"


@dataclass
class HeldFolder:
    """An output folder held by this process."""

    folder: Path
    kind: str
    resuming: bool

    def started(self) -> None:
        """The new content is under way: delete what it replaces."""
        if "phase" in read_mark(self.folder):
            write_mark(self.folder, self.kind)
            shutil.rmtree(self.folder / HIDDEN / "replaced", ignore_errors=True)

    def finished(self) -> None:
        """Note in the mark that nothing is left to resume."""
        self.started()
        write_mark(self.folder, self.kind, finished=True)


@contextmanager
def hold_folder(
    out: Path,
    kind: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    reads: Iterable[str | Path] = (),
    images: Iterable[str] = (),
) -> Iterator[HeldFolder]:
    """Hold OUT for a content of that kind: new, or the one that is there (resume), or one that replaces it (overwrite).

    What is replaced is kept until `HeldFolder.started`; if the block fails before that, it is put back.
    reads: MODELs that the caller reads, which must not lie in what is deleted.
    images: DATA that it reads, which must not either; and OUT must not lie in a folder of images, to which it would add.
    """
    images = [*images]
    reads = [*reads, *images]
    if not check_folder(out, kind, resume=resume, overwrite=overwrite, reads=reads):
        refuse_inside(out, images)
    created = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out):
        _put_back(out)
        held = HeldFolder(out, kind, _may_resume(out, kind, resume, overwrite, reads))
        if entries(out) and not held.resuming:
            _set_aside(out, kind)
        elif read_mark(out).get("kind") != kind or read_mark(out).get("finished"):
            write_mark(out, kind)
        try:
            yield held
        except BaseException:
            _put_back(out)
            if created and not entries(out):
                shutil.rmtree(out, ignore_errors=True)
            raise
        held.started()


def check_folder(
    out: Path, kind: str, *, resume: bool = False, overwrite: bool = False, reads: Iterable[str | Path] = ()
) -> bool:
    """Whether OUT holds something to resume; an error where it may not be written. Nothing is deleted."""
    if out.is_symlink() and not out.exists():
        raise UserError(f"--out {out} is a broken link; name a folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; name a folder")
    refuse_if_locked(out)
    if "phase" in read_mark(out):  # killed before the content that replaces another had started
        with lock_folder(out, wait=True):
            _put_back(out)
    return _may_resume(out, kind, resume, overwrite, reads)


def _may_resume(out: Path, kind: str, resume: bool, overwrite: bool, reads: Iterable[str | Path]) -> bool:
    if not entries(out):
        return False
    content, found = CONTENTS[kind], read_mark(out).get("kind")
    if overwrite:
        _refuse_deletion(out, content, found, reads)
        return False
    if not resume:
        raise UserError(f"{out} is not empty: {content.advice}")
    if found != kind and (found is not None or not any((out / e).exists() for e in content.evidence)):
        held = CONTENTS[found].words if found in CONTENTS else "other files"
        raise UserError(f"{out} holds {held}, not {content.words} of cuewise; name another --out")
    return True


def _refuse_deletion(out: Path, content: Content, found: str | None, reads: Iterable[str | Path]) -> None:
    if found not in CONTENTS:
        raise UserError(
            f"--overwrite would delete {out}, which this version of cuewise did not write; "
            "delete it yourself, or name another --out"
        )
    if CONTENTS[found] is not content:
        words = f"{CONTENTS[found].words}, not {content.words}"
        raise UserError(f"--overwrite would delete {out}, which holds {words}; name another --out")
    place = os.path.realpath(out)
    for path in filter(None, map(_file_of, map(str, reads))):
        if (os.path.realpath(path) + os.sep).startswith(place + os.sep):
            raise UserError(f"--overwrite would delete {path}, which this command reads; name another --out")


def refuse_inside(out: Path, images: Iterable[str]) -> None:
    """An error where OUT is, or lies below, a folder of images: the pictures written there would be images of the set."""
    place = os.path.realpath(out) + os.sep
    for spec in images:
        whole = spec.partition("?")[0]
        folder = os.path.expanduser(whole)
        if not os.path.exists(folder):
            folder = os.path.expanduser(whole.partition("=")[2])  # role=DATA
        if os.path.isdir(folder) and place.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep):
            raise UserError(
                f"--out {out} lies in {folder}, whose images this command reads: what is written there would become part of "
                "the set; name an --out outside"
            )


def is_embedded(spec: str) -> bool:
    """Whether DATA is the embedded set, not a folder whose name begins like it."""
    return re.match(r"shapes($|[:?])", spec) is not None


def _file_of(spec: str) -> Path | None:
    """The file or folder on disk that a DATA or MODEL names, if it names one."""
    whole = spec.partition("?")[0]
    for text in (whole, spec.rpartition(":")[2].partition("?")[0], whole.partition("=")[2]):  # role=DATA
        path = Path(os.path.expanduser(text))
        if not text:
            continue
        if path.exists():
            return path
        archive = next((p for p in path.parents if p.is_file()), None)  # a folder inside a zip
        if archive is not None:
            return archive
    return None


def entries(out: Path) -> list[Path]:
    """What lies in a folder beside cuewise's own hidden folder."""
    return sorted(p for p in out.iterdir() if p.name != HIDDEN) if out.is_dir() else []


def read_mark(out: Path) -> dict[str, Any]:
    """mark.json, or nothing where it is missing or unreadable."""
    content = read_object(out / HIDDEN / "mark.json")
    return content if isinstance(content.get("kind"), str) else {}


def write_mark(out: Path, kind: str, **more: Any) -> None:
    """Note that cuewise writes this folder."""
    from cuewise import __version__

    (out / HIDDEN).mkdir(parents=True, exist_ok=True)
    write_json(out / HIDDEN / "mark.json", {"kind": kind, "cuewise": __version__, **more})


def _set_aside(out: Path, kind: str) -> None:
    """Move what is there into OUT/.cuewise/replaced: in the same folder, so links and mount points stay unchanged."""
    replaced = out / HIDDEN / "replaced"
    shutil.rmtree(replaced, ignore_errors=True)
    replaced.mkdir(parents=True)
    before = read_mark(out)
    write_mark(out, kind, phase="moving", before=before)
    for path in entries(out):
        os.rename(path, replaced / path.name)
    write_mark(out, kind, phase="new", before=before)


def _put_back(out: Path) -> None:
    """Put back what a run that never started was to replace, after a failure or at the next command after a kill."""
    mark, replaced = read_mark(out), out / HIDDEN / "replaced"
    if "phase" not in mark:
        shutil.rmtree(replaced, ignore_errors=True)
        return
    if mark["phase"] == "new":
        for path in entries(out):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write_mark(out, str(mark.get("kind")), phase="moving", before=mark.get("before"))
    for path in sorted(replaced.iterdir()) if replaced.is_dir() else ():
        os.rename(path, out / path.name)
    write_json(out / HIDDEN / "mark.json", mark.get("before"))
    shutil.rmtree(replaced, ignore_errors=True)
