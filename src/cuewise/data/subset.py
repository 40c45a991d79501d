"""Some classes of a set, by a shipped list or a list in a file (`DIR?classes=imagenet100`, `DIR?classes=ids.txt`)."""

from __future__ import annotations

import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.dataset import Dataset
from cuewise.data.part_of_set import PartOfSet
from cuewise.errors import UserError
from cuewise.folders import is_embedded

SHOWN = 20  # missing classes that an error names
FORM = "one class per line"


class Subset(PartOfSet):
    """The images of some classes of a set, as a set whose classes are those alone."""

    def __init__(self, whole: Dataset, classes: str | os.PathLike[str], shown: str) -> None:
        """classes: a shipped list or a file; shown: what the user calls the set."""
        numbers = find(whole, read_list(classes), f"{shown}: of the list {os.fspath(classes)}")
        assert whole.labels is not None
        self.whole, self.list = whole, os.fspath(classes)
        self.rows = np.flatnonzero(np.isin(whole.labels, numbers))
        self.labels = np.searchsorted(numbers, whole.labels[self.rows]).astype(np.int64)
        self.classes = tuple(whole.classes[k] for k in numbers)
        self.columns: dict[str, NDArray[Any]] = {k: v[self.rows] for k, v in whole.columns.items()}
        self.object_classes = whole.object_classes

    def fingerprint(self) -> dict[str, Any]:
        """That of the selected images; files skipped in folders of other classes are no part of it."""
        found = self.whole.select(self.rows).fingerprint()
        others = set(self.whole.classes) - set(self.classes)
        skipped = [s for s in found["skipped"] if s["path"].partition("/")[0] not in others]
        sources = [{**source, "classes": self.list} for source in found["sources"]]
        return {**found, "sources": sources, "skipped": skipped}


def split_classes(spec: str) -> tuple[str, str | None]:
    """'NAME?split=test&classes=LIST' → 'NAME?split=test', 'LIST'; None without a list, or where a file is called so."""
    match = re.search(r"([?&])classes=([^&]*)&?", spec)
    if match is None or os.path.exists(os.path.expanduser(spec)):
        return spec, None
    if is_embedded(spec) and match[2].isdigit():  # how many classes: an option of shapes itself
        return spec, None
    rest = spec[match.end() :]
    return spec[: match.start()] + (match[1] + rest if rest else ""), match[2]


def shipped() -> dict[str, str]:
    """name → text of the lists that come with cuewise."""
    files = (resources.files("cuewise.data") / "subsets").iterdir()
    found = {f.name.removesuffix(".txt"): f for f in files if f.name.endswith(".txt")}
    return {name: found[name].read_text(encoding="utf-8") for name in sorted(found)}


def read_list(classes: str | os.PathLike[str]) -> list[str]:
    """A shipped list by its name, else the lines of a file (what is behind # is a remark) or its JSON list."""
    known = shipped()
    try:
        name = os.fspath(classes)
        text = known[name] if name in known else Path(name).expanduser().read_text(encoding="utf-8")
        entries = [str(e) for e in json.loads(text)] if text.lstrip().startswith("[") else _lines(text)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"the list of classes {name!r} cannot be read ({why}); give a file with {FORM}, or a list that "
            f"comes with cuewise: {', '.join(known)}"
        ) from None
    if not entries:
        raise UserError(f"the list of classes {name!r} is empty; give {FORM}")
    return entries


def _lines(text: str) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def find(whole: Dataset, entries: list[str], where: str) -> NDArray[np.int64]:
    """Sorted numbers of the listed classes; a line may continue after the class ("n02869837 bonnet")."""
    if whole.labels is None:
        raise UserError(
            f"{where}: no class is there, because the set has no labels; give one folder per class"
        )
    known = {name: k for k, name in enumerate(whole.classes)}
    found = [known.get(line, known.get(line.split()[0])) for line in entries]
    missing = [line for line, k in zip(entries, found) if k is None]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise UserError(
            f"{where}, {len(missing)} of {len(entries)} classes are not there: {', '.join(missing[:SHOWN])}{more} "
            f"(classes there are like {whole.classes[0]!r}); add them, or fix the list"
        )
    return np.unique(np.array(found, np.int64))
