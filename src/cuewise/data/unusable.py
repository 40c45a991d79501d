"""Files that could not be used, in one line for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

NAMED = 5


def unusable(files: Sequence[Mapping[str, str]], where: str = "") -> str:
    """ "2 files of photos could not be used: a.jpg (empty file), …"; nothing where all could be.

    files: {"path", "why"} of each; where: the set, where several are spoken of
    """
    if not files:
        return ""
    noun = "1 file" if len(files) == 1 else f"{len(files):,} files"
    more = f", and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    named = ", ".join(f"{_one_line(f['path'])} ({f['why']})" for f in files[:NAMED])
    return f"{noun}{f' of {where}' if where else ''} could not be used: {named}{more}"


def _one_line(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def say_unusable(files: Sequence[Mapping[str, str]], where: str = "") -> None:
    """The line on the terminal, where there is something to say."""
    if files:
        print(unusable(files, where), file=sys.stderr, flush=True)
