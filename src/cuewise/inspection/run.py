"""cuewise inspect: what each set gives away, what sets share, in inspect.json and report.html."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, open_data
from cuewise.data.object_masks import WithMasks, object_masks
from cuewise.data.parts import doubt_names, doubt_parts, warn_of_set
from cuewise.data.unusable import files_among
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.inspection.clue import CLUES, Clue
from cuewise.inspection.copies import CopiedImages, contradictions, copies_between, copies_within, groups_of
from cuewise.inspection.gather import Gathered, gather
from cuewise.inspection.judge import FEWEST, FOLDS, Judged, judge

Ids = NDArray[np.int64]
MOST_NAMED = 50  # broken files that inspect.json names
NAMED_CLASSES = 6  # on the terminal


@dataclass
class Inspected:
    """One set with what was found; `labels` are −1 for images without one, `classes` are the names of the rest."""

    name: str
    spec: str
    data: Dataset
    found: Gathered
    copies: CopiedImages
    labels: Ids
    classes: tuple[str, ...]
    by_objects: bool = False  # labelled by the largest object of each image
    clues: dict[str, Judged] = field(default_factory=dict)
    rows: Ids = field(default_factory=lambda: np.zeros(0, np.int64))  # of the images that were judged
    unjudged: str = ""  # why no clue was judged
    lacking: dict[str, str] = field(default_factory=dict)  # clue → what the set has not got for it

    @property
    def twins(self) -> str:
        """Classes that are one in all likelihood."""
        found = doubt_names(self.data)
        return f"{self.name}: {found}." if found else ""

    def image_name(self, row: int) -> str:
        return self.data.name(int(self.found.index[row]))

    @property
    def counts(self) -> dict[str, int]:
        """class → images."""
        return {name: int((self.labels == k).sum()) for k, name in enumerate(self.classes)}

    @property
    def broken(self) -> list[dict[str, str]]:
        """Files that could not be used, and why."""
        return self.data.fingerprint()["skipped"] + [{"path": p, "why": w} for p, w in self.found.skipped]


def inspect_sets(
    data: Sequence[str],
    *,
    only: Sequence[str],
    seed: int,
    workers: int,
    masks: str | None,
    mask_value: int | None,
) -> list[Inspected]:
    """Every DATA as a set of its own; masks are those of all of them, by name."""
    if not data:
        raise UserError("no DATA given: name a folder with one subfolder per class, an archive, or `shapes`")
    chosen = [CLUES.get(name) for name in only] if only else list(CLUES.all().values())
    clues = [clue() for clue in chosen]
    names = short_names(data)
    opened = [(name, spec, open_data([spec])) for name, spec in zip(names, data)]
    if masks is not None or mask_value is not None:
        opened = _masked(opened, masks, mask_value)
    sets = []
    for name, spec, images in opened:
        print(f"{name}: {described(images)}", file=sys.stderr, flush=True)
        warn_of_set(images, [spec], files=False)  # named with those that cannot be decoded
        sets.append(_inspect(name, spec, images, clues, seed, workers))
    if not any(s.found.clues for s in sets):
        needs = "; ".join(f"{name} needs {why}" for name, why in sets[0].lacking.items())
        raise UserError(f"--only {','.join(only)}: {sets[0].name} lacks what it looks at; {needs}")
    return sets


def described(data: Dataset) -> str:
    """ "27 images of 3 classes: cat, dog, fox": what the labels are taken to be; of objects, the classes that have one."""
    names, of = data.classes, "of"
    count = "1 image" if len(data) == 1 else f"{len(data):,} images"
    if data.labels is None and data.object_classes:
        there = np.zeros(len(data.object_classes), bool)
        for i in range(len(data)):
            facts = data.facts(i)
            if facts.boxes is not None:
                there[facts.boxes.classes[facts.boxes.classes >= 0]] = True
            elif facts.labels is not None:
                there |= facts.labels
            if there.all():
                break
        if not there.any():
            return f"{count}, no objects: none of the {len(there):,} classes that it lists has one"
        names, of = tuple(n for n, has in zip(data.object_classes, there) if has), "with objects of"
    elif data.labels is None:
        names = ()
    if not names:
        return f"{count}, no labels"
    more = ", …" if len(names) > NAMED_CLASSES else ""
    noun = "class" if len(names) == 1 else "classes"
    return f"{count} {of} {len(names)} {noun}: {', '.join(names[:NAMED_CLASSES])}{more}"


def _masked(
    opened: list[tuple[str, str, Dataset]], masks: str | None, value: int | None
) -> list[tuple[str, str, Dataset]]:
    """The sets with masks; an error where the masks belong to none of them."""
    if masks is None:
        raise UserError("--mask-value belongs to --masks: say where the masks are")
    given, out, reasons = open_data(masks), [], []
    for name, spec, data in opened:
        try:
            found = object_masks(data, given, value, f"--masks {masks}", name)
        except UserError as error:
            reasons.append(error)
            out.append((name, spec, data))
            continue
        out.append((name, spec, Dataset([WithMasks(data, found)])))
    if len(reasons) == len(opened):
        raise reasons[0]
    return out


def short_names(data: Sequence[str]) -> list[str]:
    """The last part of each DATA, with as many parts before it as it takes to distinguish them."""
    parts = [d.rstrip("/").split("/") for d in data]
    for taken in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-taken:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    raise UserError(f"{next(d for d in data if data.count(d) > 1)} is given twice; name each set once")


def _inspect(name: str, spec: str, data: Dataset, clues: list[Clue], seed: int, workers: int) -> Inspected:
    found = gather(data, clues, name, workers)
    labels, classes, by_objects = labels_of(data, found)
    out = Inspected(name, spec, data, found, copies_within(found), labels, classes, by_objects)
    out.lacking = {
        c.name: c.needs or "what no image of the set has" for c in clues if c.name not in found.clues
    }
    out.rows, out.unjudged = judged_rows(labels, classes)
    if not out.unjudged and not found.clues:
        out.unjudged = "it lacks what is looked at"
    if not out.unjudged:
        number = np.unique(labels[out.rows], return_inverse=True)[1].astype(np.int64)
        groups = groups_of(len(labels), out.copies)[out.rows]
        if (distinct := len(np.unique(groups))) < FOLDS:
            out.unjudged = f"{distinct} different images: at least {FOLDS} are needed to judge a clue"
            return out
        for clue, values in found.clues.items():
            out.clues[clue] = judge(values[out.rows], number, groups, f"{clue}/accuracy", seed)
    return out


def labels_of(data: Dataset, found: Gathered) -> tuple[Ids, tuple[str, ...], bool]:
    """The label per readable image; where a set has boxes and no labels, the class of the largest box."""
    if data.labels is not None:
        return data.labels[found.index], data.classes, False
    if (found.objects >= 0).any():
        return found.objects, data.object_classes, True
    return np.full(len(found.index), -1, np.int64), (), False


def judged_rows(labels: Ids, classes: Sequence[str]) -> tuple[Ids, str]:
    """Images of classes with enough of them, or why nothing can be judged."""
    none = np.zeros(0, np.int64)
    if not classes:
        return none, "no labels: put the images into one folder per class to have clues judged"
    counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    enough = np.flatnonzero(counts >= FEWEST)
    if len(enough) < 2:
        few = f"{len(enough)} of {len(classes)} classes have {FEWEST} images or more"
        return none, f"{few}; two are needed to judge a clue"
    return np.flatnonzero(np.isin(labels, enough)), ""


def document_of(sets: Sequence[Inspected], version: str) -> dict[str, Any]:
    """inspect.json."""
    shared = [
        {"first": a.name, "second": b.name, "images": len(a.found.index),
         **copies_between(a.found, b.found).as_dict((_names(a), _names(b)))}
        for a, b in itertools.combinations(sets, 2)
    ]  # fmt: skip
    return {
        "cuewise": version,
        "sets": [_set_document(s) for s in sets],
        "shared": shared,
        "scores": [
            {
                **j.accuracy.as_dict(),
                "guessing": j.majority,
                "name": f"{s.name}/{j.accuracy.name}" if len(sets) > 1 else j.accuracy.name,
            }
            for s in sets
            for j in s.clues.values()
        ],
    }


def _set_document(s: Inspected) -> dict[str, Any]:
    odd = contradictions(s.copies, s.labels) if s.classes else []
    broken = s.broken
    return {
        "name": s.name,
        "data": s.spec,
        "images": len(s.found.index),
        "classes": s.counts,
        "labels": "class of the largest object" if s.by_objects else "folders" if s.classes else "none",
        "left_out": len(s.labels) - len(s.rows) if s.classes else 0,
        "clues": {name: _clue_document(s, name, j) for name, j in s.clues.items()},
        "not_judged": s.unjudged,
        "copies": {**s.copies.as_dict((_names(s), _names(s))), "under_two_labels": len(odd),
                   "contradictions": [[s.image_name(i), s.image_name(j)] for i, j in odd[:MOST_NAMED]]},
        "broken": {"count": len(files_among(broken)), "files": broken[:MOST_NAMED]},
        "lacking": s.lacking,
        "doubt": " ".join(filter(None, (doubt_parts(s.data, [s.spec]), s.twins))),
    }  # fmt: skip


def _clue_document(s: Inspected, name: str, j: Judged) -> dict[str, Any]:
    present = np.unique(s.labels[s.rows])
    right = j.predicted == np.searchsorted(present, s.labels[s.rows])
    by_class = {s.classes[k]: float(right[s.labels[s.rows] == k].mean()) for k in present}
    return {
        **j.accuracy.as_dict(),
        "summary": CLUES.get(name).summary,
        "shortcut": CLUES.get(name).shortcut,
        "guessing": j.majority,
        "shuffled": j.shuffled[0],
        "shuffled_highest": j.shuffled[1],
        "predicts": j.predicts,
        "unclear": j.unclear,
        "by_class": by_class,
    }


def _names(s: Inspected) -> list[str]:
    return [s.image_name(row) for row in range(len(s.found.index))]


def save_document(document: Mapping[str, Any], folder: Path) -> Path:
    write_json(folder / "inspect.json", document)
    return folder / "inspect.json"
