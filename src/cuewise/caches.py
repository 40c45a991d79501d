"""What cuewise keeps in its cache folder, kind by kind, and how it is deleted: only files that cuewise wrote."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuewise.compiled import cache_root, digest_of_kernels
from cuewise.errors import UserError, unknown

TEMPORARY = r"(\.[0-9a-f]{12}\.tmp)?"  # a file that a kill left behind
# kind → paths in the cache that are of that kind, as they are written by the modules named
KINDS = {
    "features": rf"features/[0-9a-f]{{40}}\.npz{TEMPORARY}",  # encoders/cached.py
    "textures": rf"textures/[0-9a-f]{{2}}/[0-9a-f]{{40}}\.png{TEMPORARY}",  # views/textures.py
    "kernels": r"kernels/[0-9a-f]{16}/([^/]+/)?([^/]+\.(nbi|nbc|compiled)|[^/]+\.tmp\.?[^/]*)",  # compiled.py, numba
    "indexes": rf"index-[0-9a-f]{{32}}\.(npz|images){TEMPORARY}",  # data/cache.py, data/parquet.py
    "permutations": rf"permutations/\d+-\d+-\d+\.npy{TEMPORARY}",  # methods/permutations.py
}


@dataclass
class Cache:
    """Files of one kind."""

    files: list[Path] = field(default_factory=list)
    size: int = 0


def clean_caches(kinds: Sequence[str], *, yes: bool) -> dict[str, object]:
    """Say what is kept, ask unless `yes`, delete; returns how much was found and deleted."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("no cache", kind, KINDS)
    root = cache_root()
    found = {k: v for k, v in caches(root).items() if not kinds or k in kinds}
    for kind, cache in found.items():
        print(f"{kind:<13} {len(cache.files):>7} files  {shown(cache.size):>9}", file=sys.stderr)
    files = [f for cache in found.values() for f in cache.files]
    size = sum(cache.size for cache in found.values())
    result: dict[str, object] = {"cache": str(root), "files": len(files), "bytes": size, "deleted": 0}
    if not files:
        return result
    if not yes and not agreed(f"delete {len(files)} files ({shown(size)}) below {root}?"):
        return result
    return {**result, "deleted": sum(map(removed, files)), **dict(_tidied(root, files))}


def caches(root: Path) -> dict[str, Cache]:
    """kind → its files below `root`; links are neither followed nor counted, and files of no kind are left alone."""
    found = {kind: Cache() for kind in KINDS}
    for file, size in regular_files(root):
        path = file.relative_to(root).as_posix()
        kind = next((k for k, pattern in KINDS.items() if re.fullmatch(pattern, path)), None)
        if kind is not None:
            found[kind].files.append(file)
            found[kind].size += size
    return found


def regular_files(root: Path) -> Iterator[tuple[Path, int]]:
    """Files that are no links, in folders that are no links, with their size."""
    for place, folders, names in os.walk(root, followlinks=False):
        folders[:] = [f for f in folders if not os.path.islink(os.path.join(place, f))]
        for name in names:
            file = Path(place, name)
            facts = file.lstat()
            if stat.S_ISREG(facts.st_mode):
                yield file, facts.st_size


def agreed(question: str) -> bool:
    """Whether the user says yes; without a terminal nobody can, and nothing is deleted."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        print(f"cuewise: nothing is deleted; add --yes to {question.rstrip('?')}", file=sys.stderr)
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def removed(file: Path) -> int:
    """1 where it was deleted; another process may have been faster."""
    try:
        file.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UserError(
            f"{file} cannot be deleted ({error.strerror}); check the rights of the folder"
        ) from None
    return 1


def _tidied(root: Path, files: Sequence[Path]) -> Iterator[tuple[str, object]]:
    """Remove folders that are now empty, except the one that this process compiles into."""
    current = root / "kernels" / digest_of_kernels(Path(__file__).parent)
    places = {p for file in files for p in file.parents if p != root and root in p.parents}
    for place in sorted(places, key=lambda p: -len(p.parts)):
        if place not in (current, current.parent):
            try:
                place.rmdir()
            except OSError:  # something of the user's is in it
                yield "left", str(place)


def shown(size: int) -> str:
    """1234567 → "1.2 MB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
