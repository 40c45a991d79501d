"""What a user gives by mistake: folders that are parts of a set (train, val, masks) and no classes, one class under two
names, files without a class."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cuewise.data.class_names import alike, same_but_for
from cuewise.data.dataset import Dataset
from cuewise.data.unusable import files_among, unusable

MANY = 0.05  # of all files
# in the order in which one is proposed
PARTS = ("train", "training", "images", "val", "valid", "validation", "test", "masks", "annotations")


def parts_among(classes: Sequence[str]) -> list[str]:
    """Classes that are called like parts of a set; one among others is a class ("train", beside "bus"), so it takes two."""
    found = [name for name in classes if name.lower() in PARTS]
    return found if len(found) > 1 or len(found) == len(classes) else []


def doubt_parts(data: Dataset, specs: Sequence[str]) -> str:
    """The warning about a labelled set whose classes seem to be parts; "" for any other. specs: DATA as typed."""
    found = parts_among(data.classes) if data.labels is not None else []
    if not found:
        return ""
    first = min(found, key=lambda name: PARTS.index(name.lower()))
    hint = ""
    if len(specs) == 1 and not specs[0].startswith("hf:"):
        place, mark, options = specs[0].partition("?")
        hint = f" Did you mean {place.rstrip('/')}/{first}{mark}{options}?"
    return f"{' '.join(specs)}: classes are {', '.join(found)}: are these parts of a set?{hint}"


def doubt_names(data: Dataset) -> str:
    """The warning about classes whose names differ in case or spaces alone; "" where there are none."""
    twins = same_but_for(alike(data.classes, data.classes)) if data.labels is not None else ""
    return f"{twins}, or they are different classes" if twins else ""


def warn_of_set(data: Dataset, specs: Sequence[str], *, names: bool = True, files: bool = True) -> None:
    """On the terminal, wherever labels are used: doubts about the classes, and files that are left out.

    names: also classes that differ in case alone; files: also those files
    """
    where = " ".join(specs)
    twins = doubt_names(data) if names else ""
    for doubt in filter(None, (doubt_parts(data, specs), twins and f"{where}: {twins}")):
        print(f"WARNING: {doubt}", file=sys.stderr, flush=True)
    if files:
        warn_of_files(data, where)


def warn_of_files(data: Dataset, where: str) -> None:
    """Files that are left out before any is decoded; loud where they are many."""
    entries = data.fingerprint()["skipped"]
    if entries:
        files = len(files_among(entries))
        loud = "WARNING: " if files and files >= MANY * (len(data) + files) else ""
        print(f"{loud}{unusable(entries, where)}", file=sys.stderr, flush=True)
