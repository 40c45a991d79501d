"""Where compiled kernels are kept: one folder for each state of their sources, so that none is ever stale.

numba keeps a compiled function until its own file changes and does not see changes in the files it calls. A folder whose
name is a digest of all kernel sources closes that gap, and is writable where an installed package is not.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_root() -> Path:
    """CUEWISE_CACHE, or the user's cache folder."""
    base = os.environ.get("CUEWISE_CACHE")
    return Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cuewise"


def digest_of_kernels(package: Path) -> str:
    """One digest over every source that names numba."""
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if b"numba" in source:
            found.update(file.relative_to(package).as_posix().encode() + b"\0" + source + b"\0")
    return found.hexdigest()[:16]


def keep_kernels() -> None:
    """Point numba's cache at this state of the kernels; to be called before numba is imported."""
    if "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(
            cache_root() / "kernels" / digest_of_kernels(Path(__file__).parent)
        )
