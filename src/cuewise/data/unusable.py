"""Files and boxes that could not be used, in one line for the terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

NAMED = 5  # files, and unknown classes
NAMED_BOXES = 3
LEFT_OUT, CUT = "left out", "cut"  # what became of a box


def unusable(files: Sequence[Mapping[str, str]], where: str = "") -> str:
    """ "2 files of photos could not be used: a.jpg (empty file), …; 1 box was cut to its image: …"; nothing where all could be.

    files: {"path", "why"} of each; "box" (and perhaps "class" and "doubt") says that it is a box and what became of it
    where: the set, where several are spoken of
    """
    whole = files_among(files)
    lost, cut = ([f for f in files if f.get("box") == fate] for fate in (LEFT_OUT, CUT))
    of = f" of {where}" if where else ""
    parts = []
    if whole:
        noun = "1 file" if len(whole) == 1 else f"{len(whole):,} files"
        parts.append(f"{noun}{of} could not be used: {_named(whole, NAMED)}")
    if lost:
        parts.append(f"{_boxes(lost, of)} left out: {_why_left_out(lost)}")
    if cut:
        image = "its image" if len(cut) == 1 else "their images"
        parts.append(f"{_boxes(cut, of)} cut to {image}: {_named(cut, NAMED_BOXES)}")
    return "; ".join([*parts, *_advice(files)])


def files_among(entries: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Those that are about a file, not about a box."""
    return [entry for entry in entries if "box" not in entry]


def _boxes(entries: Sequence[object], of: str) -> str:
    return f"1 box{of} was" if len(entries) == 1 else f"{len(entries):,} boxes{of} were"


def _named(files: Sequence[Mapping[str, str]], most: int) -> str:
    """The first of them, and how many more there are."""
    more = f", and {len(files) - most:,} more" if len(files) > most else ""
    return ", ".join(f"{_one_line(f['path'])} ({f['why']})" for f in files[:most]) + more


def _why_left_out(lost: Sequence[Mapping[str, str]]) -> str:
    """Boxes of unknown classes by their classes, the others one by one."""
    unknown = Counter(f["class"] for f in lost if "class" in f)
    rest = [f for f in lost if "class" not in f]
    parts = []
    if unknown:
        more = ", …" if len(unknown) > NAMED else ""
        names = ", ".join(repr(name) for name in list(unknown)[:NAMED]) + more
        several = f"{len(unknown):,} unknown classes ({names})"
        parts.append(
            f"{unknown.total():,} of {f'the unknown class {names}' if len(unknown) == 1 else several}"
        )
    if rest:
        parts.append(_named(rest, NAMED_BOXES))
    return ", ".join(parts)


def _advice(files: Iterable[Mapping[str, str]]) -> list[str]:
    """What to do about it, each thing once."""
    advice = list(dict.fromkeys(f["doubt"] for f in files if "doubt" in f))
    if any("class" in f for f in files):
        advice.append("add unknown classes to the file's categories (COCO) or names (YOLO)")
    return advice


def _one_line(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def say_unusable(files: Sequence[Mapping[str, str]], where: str = "") -> None:
    """The line on the terminal, where there is something to say."""
    if files:
        print(unusable(files, where), file=sys.stderr, flush=True)
