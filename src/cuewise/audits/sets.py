"""The data of an audit: which test set asks what, and what stands in where the user gave nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.decisions import cues_in
from cuewise.audits.keys import data_key
from cuewise.audits.stimuli import conflicts_of
from cuewise.data import Dataset, Facts, Image, Source, open_data
from cuewise.data.subset import split_classes

# what the name of a set says about the cue that is left in it
KINDS = {
    "silhouette": re.compile(r"silhouette", re.I),
    "sketch": re.compile(r"sketch|edges?\b|edges?[-_]", re.I),
    "stylized": re.compile(r"styli[sz]ed", re.I),
    "texture": re.compile(r"textures?\b|textures?[-_]", re.I),
}
EMBEDDED = {
    "texture": "texture_only",
    "silhouette": "silhouette",
    "sketch": "sketch",
}  # audit → split of `shapes`
PARTS = {"train", "val", "valid", "validation", "test", "images"}  # names that say nothing

Named = tuple[str, Dataset]


@dataclass
class Sets:
    """What is asked about: see `Subject`."""

    train: Dataset
    test: list[Named]
    conflict: Named | None
    given: dict[str, list[Named]] = field(default_factory=dict)
    embedded: bool = False
    fitted: bool = True  # whether a probe can be fitted on `train`

    @property
    def plain(self) -> list[Named]:
        """Labelled test sets with all cues in them, in the order given."""
        known = {id(d) for sets in self.given.values() for _, d in sets}
        return [(n, d) for n, d in self.test if id(d) not in known and d.labels is not None]


def open_sets(train: Sequence[str], test: Sequence[str], size: int) -> Sets:
    """Open everything; without --train and --test, or with embedded sets alone, the embedded shapes are used."""
    names = short_names(test)
    tests = [(name, _opened(spec)) for name, spec in zip(names, test)]
    embedded = all(re.match(r"shapes(:aligned)?($|\?)", t) for t in train)
    embedded = embedded and all(re.match(r"shapes($|[:?])", t) for t in test)
    more = f"size={size}{same_palette(train)}"
    if train:
        data = _joined(tuple(train))
    elif embedded:
        data = _opened(f"shapes:aligned?rho=1&n=3200&part=train&{more}")
    else:
        data = unlabelled(_joined(tuple(test)))
    if embedded and not test:
        tests = [("shapes", _opened(f"shapes:aligned?rho=1&n=1200&part=test&{more}"))]
    conflict = next(((n, d) for n, d in tests if is_conflict(d)), None)
    if embedded and conflict is None:
        conflict = ("shapes:conflict", _opened(f"shapes:conflict?n=1600&part=test&{more}"))
    tests = [t for t in tests if conflict is None or t[1] is not conflict[1]]
    if conflict is not None and conflict[1].labels is None:
        conflict = (conflict[0], _named_by_cues(conflict[1]))
    given: dict[str, list[Named]] = {}
    for name, data_set in tests:
        if kind := kind_of(name):
            given.setdefault(kind, []).append((name, data_set))
    if embedded:
        for kind, split in EMBEDDED.items():
            given.setdefault(kind, [(split, _opened(f"shapes:{split}?n=800&part=test&{more}"))])
    return Sets(data, tests, conflict, given, embedded, data.labels is not None)


def same_palette(train: Sequence[str]) -> str:
    """The palette of the embedded training set, for the embedded test sets to share."""
    return "&palette=one" if any(re.search(r"[?&]palette=one(&|$)", spec) for spec in train) else ""


@lru_cache(maxsize=64)
def _opened(spec: str) -> Dataset:
    return open_data(spec)


@lru_cache(maxsize=8)
def _joined(specs: tuple[str, ...]) -> Dataset:
    return open_data(specs)


def forget() -> None:
    """Sets are opened once for all models of an audit, and anew for the next."""
    _opened.cache_clear()
    _named_by_cues.cache_clear()
    _joined.cache_clear()


def kind_of(name: str) -> str | None:
    """The cue that is left in a set, by its name."""
    return next((kind for kind, said in KINDS.items() if said.search(name)), None)


def short_names(specs: Sequence[str]) -> list[str]:
    """The last part of each that says something, without its ending; longer where two would be the same."""
    for depth in (1, 2, 3):
        found = [_short(spec, depth) for spec in specs]
        if len(set(found)) == len(found):
            return found
    return list(specs)


def _short(spec: str, depth: int) -> str:
    spec = split_classes(spec)[0]
    head = spec.partition("?")[0] if spec.startswith("shapes") and depth == 1 else spec
    parts = [p for p in head.rstrip("/").split("/") if p]
    while len(parts) > depth and parts[-depth] in PARTS:
        depth += 1
    return re.sub(r"\.(zip|tar|parquet)(?=/|$)", "", "/".join(parts[-depth:])) or spec


def is_conflict(data: Dataset) -> bool:
    """Whether most file names tell shape and texture (cat7-elephant1.png), of the set's own classes where it has some."""
    known = set(data.classes) or None
    found = [cues_in(data.name(i), known) for i in range(0, len(data), max(1, len(data) // 50))]
    named = [f for f in found if f is not None]
    if len(named) < 0.8 * len(found):
        return False
    return known is not None or len({s for s, _ in named} & {t for _, t in named}) >= 2


@lru_cache(maxsize=4)
def _named_by_cues(data: Dataset) -> Dataset:
    """Stimuli in one flat folder, labelled by the shape that their names tell."""
    found = [cues_in(data.name(i)) for i in range(len(data))]
    classes = tuple(sorted({c for cues in found if cues for c in cues}))
    labels = np.array([classes.index(cues[0]) if cues else 0 for cues in found], np.int64)
    source: Source = Renamed(data, labels, classes)
    return Dataset([source])


def chosen(data: Dataset, known: NDArray[np.bool_], limit: int, seed: int) -> NDArray[np.int64]:
    """At most `limit` images of known classes, classes in turn, in the order of the set."""
    assert data.labels is not None
    order = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    labels = data.labels[order]
    turn = np.zeros(len(order), np.int64)  # how many of its class come before
    for label in np.unique(labels):
        own = labels == label
        turn[own] = np.arange(own.sum())
    order = order[np.argsort(turn, kind="stable")]
    return np.sort(order[:limit] if limit else order)


def made_conflict(base: Named, limit: int, seed: int) -> Named | None:
    """Cue-conflict images of the set's own classes, made when they are looked at."""
    name, data = base
    source = conflicts_of(data, limit, seed)
    return None if source is None else (f"cue conflicts made of {name}", Dataset([source]))


class Renamed:
    """A set with other labels; −1 where an image has none."""

    def __init__(self, data: Dataset, labels: NDArray[np.int64] | None, classes: tuple[str, ...]) -> None:
        self.data, self.labels, self.classes = data, labels, classes
        self.columns: dict[str, NDArray[Any]] = data.columns
        self.object_classes = data.object_classes

    def facts(self, i: int) -> Facts:
        return self.data.facts(i)

    def __len__(self) -> int:
        return len(self.data)

    def name(self, i: int) -> str:
        return self.data.name(i)

    def image(self, i: int) -> Image:
        return self.data.image(i)

    def read(self, i: int) -> bytes | None:
        return self.data.read(i)

    def fingerprint(self) -> dict[str, Any]:
        return self.data.fingerprint()

    def content_key(self) -> str:
        return data_key(self.data)


def renamed(data: Dataset, labels: NDArray[np.int64], classes: tuple[str, ...]) -> Dataset:
    """The images whose label is not negative, by another numbering."""
    source: Source = Renamed(data, np.maximum(labels, 0), classes)
    whole = Dataset([source])
    return whole if (labels >= 0).all() else whole.select(labels >= 0)


def unlabelled(data: Dataset) -> Dataset:
    """The same images without labels."""
    source: Source = Renamed(data, None, ())
    return Dataset([source])
