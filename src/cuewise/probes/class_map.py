"""Test sets that share only some classes with the training set: which images count, and which answers are right."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.probes.probe import Labels, Mask
from cuewise.probes.wordnet import other_names, plain

FORM = (
    'a JSON object {"test class": "training class"} (a list where several answers are right, null to leave a '
    "class out), a CSV with the columns test,train, or one that comes with cuewise: objectnet, objectnet-13"
)
ClassMap = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Match:
    """How a test set is judged: every trained class stays in the argmax, images of other classes are left out."""

    rows: NDArray[np.int64]  # images that count
    labels: Labels  # their classes, by the test set's numbering
    right: Mask  # test classes × trained classes
    shared: tuple[str, ...]  # test classes that count
    dropped: tuple[str, ...]  # and those that do not, though there are images of them

    def __str__(self) -> str:
        """Part of the protocol; empty where every class is shared."""
        if not self.dropped:
            return ""
        return f"/shared{len(self.shared)}of{len(self.shared) + len(self.dropped)}classes"


def match(
    labels: Labels, test: Sequence[str], train: Sequence[str], mapping: ClassMap | None = None
) -> Match:
    """Classes of equal name are the same, as are a WordNet id and its name; `mapping` names the others, and overrules."""
    right = np.zeros((len(test), len(train)), bool)
    for t, name in enumerate(test):
        names = mapping[name] if mapping and name in mapping else (name,)
        found = [trained_class(n, train) for n in names]
        right[t, [i for i in found if i is not None]] = True
    counted = np.asarray(right.any(1))
    rows = np.flatnonzero(counted[labels])
    present = np.unique(labels)
    if not len(rows):
        raise UserError(
            f"the test set ({_few(test)}) shares no class with the training set ({_few(train)}): "
            "name the pairs with --class-map"
        )
    shared = tuple(test[t] for t in present if counted[t])
    return Match(rows, labels[rows], right, shared, tuple(test[t] for t in present if not counted[t]))


def trained_class(name: str, train: Sequence[str]) -> int | None:
    """The number of a training class by its own name, or by its WordNet id or name in ImageNet; None if there is none."""
    if name in train:
        return train.index(name)
    known = {plain(n): i for i, n in enumerate(train)}
    return next((known[plain(n)] for n in other_names(name) if plain(n) in known), None)


def shipped_maps() -> dict[str, ClassMap]:
    """Maps that come with cuewise, by name: the classes of a known set as WordNet ids."""
    files = (resources.files("cuewise.probes") / "class_maps").iterdir()
    found = {f.name.removesuffix(".json"): f for f in files if f.name.endswith(".json")}
    return {
        name: {k: tuple(v) for k, v in json.loads(found[name].read_text(encoding="utf-8")).items()}
        for name in sorted(found)
    }


def read_class_map(file: Path, tests: Iterable[Sequence[str]], train: Sequence[str]) -> ClassMap:
    """A map from a .json or .csv file; a name that is in no test set or was not trained is an error. Of a map that comes
    with cuewise, classes that were not trained are left out."""
    if str(file) in (known_maps := shipped_maps()):
        return known_maps[str(file)]
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the class map {file} ({error}); give {FORM}") from None
    mapping = _from_json(text, file) if file.suffix == ".json" else _from_csv(text, file)
    known = sorted({name for names in tests for name in names})
    for name, answers in mapping.items():
        _check(name, known, f"{file}: no test set has a class")
        for answer in answers:
            if trained_class(answer, train) is None:
                _check(answer, train, f"{file}: the training set has no class")
    return mapping


def _check(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {_few(known)}"
        raise UserError(f"{what} {name!r}; {hint}")


def _from_json(text: str, file: Path) -> ClassMap:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UserError(f"{file} is not JSON ({error}); give {FORM}") from None
    if not isinstance(content, dict):
        raise UserError(f"{file}: give {FORM}")
    return {
        str(k): tuple(map(str, v)) if isinstance(v, list) else () if v is None else (str(v),)
        for k, v in content.items()
    }


def _from_csv(text: str, file: Path) -> ClassMap:
    reader = csv.DictReader(text.splitlines())
    if not {"test", "train"} <= set(reader.fieldnames or []):
        raise UserError(f"{file} has the columns {reader.fieldnames}; give {FORM}")
    mapping: ClassMap = {}
    for row in reader:
        if row["test"]:
            answers = (row["train"],) if row["train"] else ()
            mapping[row["test"]] = mapping.get(row["test"], ()) + answers
    return mapping


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
