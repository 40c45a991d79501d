"""Where compiled kernels are kept: one folder for each state of their sources, so that none is ever stale.

Kernels are stored as pickles, so a cache that someone else owns or can write to is never read.
numba keeps a compiled function until its own file changes and does not see changes in the files it calls. A folder whose
name is a digest of all kernel sources closes that gap, and is writable where an installed package is not.
What a first run needs is compiled beside its imports (`begin`, `wait`).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cuewise.folders import is_embedded

_running: dict[str, Any] = {}  # groups that are being compiled


def cache_root() -> Path:
    """CUEWISE_CACHE, or the user's cache folder; a temporary one where others can write to it."""
    base = os.environ.get("CUEWISE_CACHE")
    root = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cuewise"
    return root if _private(root) else _substitute(root)


@cache
def _private(folder: Path) -> bool:
    """Whether only this user (or root) can write there; created so where it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError:  # nothing can be kept there, and nothing read
        return True
    return not hasattr(os, "geteuid") or (facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022)


@cache
def _substitute(root: Path) -> Path:
    """An empty cache for this process and its children; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="cuewise-"))
    os.environ["CUEWISE_CACHE"] = str(folder)
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    print(
        f"cuewise: {root} is not used as a cache, because others own it or can write to it; "
        "delete it, or set CUEWISE_CACHE to a folder of your own",
        file=sys.stderr,
    )
    return folder


def digest_of_kernels(package: Path) -> str:
    """One digest over every source that names numba or the decorators of kernels."""
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if b"numba" in source or b"cuewise.kernels" in source:
            found.update(file.relative_to(package).as_posix().encode() + b"\0" + source + b"\0")
    return found.hexdigest()[:16]


def keep_kernels() -> None:
    """Point numba's cache at this state of the kernels; to be called before numba is imported."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    root, digest = cache_root(), digest_of_kernels(Path(__file__).parent)
    if not (_private(root / "kernels") and _private(root / "kernels" / digest)):
        root = _substitute(root / "kernels")
    os.environ["NUMBA_CACHE_DIR"] = str(root / "kernels" / digest)


def begin(data: Sequence[str] = ()) -> None:
    """Compile in the background what a run on `data` needs; see `wait`."""
    for group in ("shapes", "views") if any(is_embedded(d) for d in data) else ("views",):
        _begin(group)


def _begin(group: str) -> None:
    """Unless that was done before or cannot be kept."""
    import subprocess  # not needed by most commands

    done = mark(group)
    if group not in _running and not done.exists() and os.access(done.parent, os.W_OK):
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            _running[group] = subprocess.Popen([sys.executable, "-m", "cuewise.ahead", group], **quiet)
        except OSError:  # no process could be started: the first call compiles
            return


def wait() -> None:
    """Wait for all started compilations; where one failed, the first call compiles."""
    while _running:
        _running.popitem()[1].wait()


def mark(group: str) -> Path:
    """A file that is there when a group is compiled."""
    return Path(os.environ["NUMBA_CACHE_DIR"], f"{group}.compiled")
