"""A set whose folders are parts of it (train, val, masks) and no classes: what a user gives by mistake."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cuewise.data.dataset import Dataset

# in the order in which one is proposed
PARTS = ("train", "training", "images", "val", "valid", "validation", "test", "masks", "annotations")


def parts_among(classes: Sequence[str]) -> list[str]:
    """Classes that are called like parts of a set; one among others is a class ("train", beside "bus"), so it takes two."""
    found = [name for name in classes if name.lower() in PARTS]
    return found if len(found) > 1 or len(found) == len(classes) else []


def doubt_parts(data: Dataset, specs: Sequence[str]) -> str:
    """What is said of a labelled set whose classes seem to be parts; nothing of any other. specs: DATA as typed."""
    found = parts_among(data.classes) if data.labels is not None else []
    if not found:
        return ""
    first = min(found, key=lambda name: PARTS.index(name.lower()))
    hint = ""
    if len(specs) == 1 and not specs[0].startswith("hf:"):
        place, mark, options = specs[0].partition("?")
        hint = f" Did you mean {place.rstrip('/')}/{first}{mark}{options}?"
    return f"{' '.join(specs)}: classes are {', '.join(found)}: are these parts of a set?{hint}"


def warn_of_parts(data: Dataset, specs: Sequence[str]) -> None:
    """The doubt on the terminal, wherever labels are used."""
    doubt = doubt_parts(data, specs)
    if doubt:
        print(f"WARNING: {doubt}", file=sys.stderr, flush=True)
