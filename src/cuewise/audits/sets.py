"""The data of an audit: the role of each test set, and what is used where the user gave nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.audit import AUDITS, Audit
from cuewise.audits.decisions import cues_in
from cuewise.audits.keys import data_key
from cuewise.audits.stimuli import conflicts_of
from cuewise.data import Dataset, open_data
from cuewise.data.overlap import Overlap, check_overlap, refuse_same
from cuewise.data.parts import warn_of_set
from cuewise.data.relabelled import Relabelled
from cuewise.data.subset import split_classes
from cuewise.errors import UserError, unknown
from cuewise.probes.corrupted_sets import by_class, is_corrupted

SHARED = ("plain", "conflict")  # roles that no audit declares, since many read them
REFINED = {"refined_bias_shape": "shape", "refined_bias_texture": "texture"}  # folders of REFINED-BIAS
HELD_OUT = 5  # one image in so many is held out where train and test sets are the same
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
    roles: list[tuple[str, str]] = field(default_factory=list)  # how each test set was read

    @property
    def plain(self) -> list[Named]:
        """Labelled test sets with all cues in them, in the order given."""
        known = {id(d) for sets in self.given.values() for _, d in sets}
        return [(n, d) for n, d in self.test if id(d) not in known and d.labels is not None]


def known_roles(asked: Sequence[Audit] = ()) -> dict[str, str]:
    """Role → split of the embedded shapes or "", as the audits declare them: all that are known, and those asked."""
    found = dict.fromkeys(SHARED, "")
    for one in (*AUDITS.all().values(), *asked):
        found |= {role: split or found.get(role, "") for role, split in one.roles.items()}
    return found


def open_sets(
    train: Sequence[str], test: Sequence[str], size: int, seed: int = 0, asked: Sequence[Audit] = ()
) -> Sets:
    """Open everything; without --train and --test, or with embedded sets alone, the embedded shapes are used."""
    test = [part for spec in test for part in refined(spec)]
    if twice := [spec for n, spec in enumerate(test) if spec in test[:n]]:
        raise UserError(f"--test {twice[0]} is given twice: give each set once")
    roles, specs = zip(*(split_role(spec, asked) for spec in test)) if test else ((), ())
    embedded = all(re.match(r"shapes(:aligned)?($|\?)", t) for t in train)
    embedded = embedded and all(re.match(r"shapes($|[:?])", t) for t in specs)
    more = f"size={size}{same_palette(train)}"
    plain = [s for s, r in zip(specs, roles) if r in ("", "plain")]
    held_out = bool(train) and (list(train) == plain or (not test and not embedded))
    found = Sets(_training_set(train, specs, embedded, more), [], None, embedded=embedded)
    for name, spec, role in zip(short_names(specs), specs, roles):
        _place(found, name, spec, role)
    if held_out:
        _hold_out(found, train, seed)
    if embedded and not test:
        found.test = [("shapes", _opened(f"shapes:aligned?rho=1&n=1200&part=test&{more}"))]
    if embedded and found.conflict is None:
        found.conflict = ("shapes:conflict", _opened(f"shapes:conflict?n=1600&part=test&{more}"))
    if embedded:
        for role, split in known_roles(asked).items():
            if not split:
                continue
            found.given.setdefault(role, [(split, _opened(f"shapes:{split}?n=800&part=test&{more}"))])
    found.fitted = found.train.labels is not None
    return found


def refined(spec: str) -> list[str]:
    """A folder that holds both sets of REFINED-BIAS as these two, or one of them with its role; any other DATA unchanged."""
    inside = [
        f"{role}={spec.rstrip('/')}/{name}" for name, role in REFINED.items() if (Path(spec) / name).is_dir()
    ]
    if len(inside) == len(REFINED):
        return inside
    own = REFINED.get(Path(spec).name)
    return [f"{own}={spec}"] if own and Path(spec).is_dir() else [spec]


def split_role(spec: str, asked: Sequence[Audit] = ()) -> tuple[str, str]:
    """("sketch", PATH) of sketch=PATH; no role where none was given. Splits of `shapes` have the role of their name."""
    role, is_given, rest = spec.partition("=")
    known = known_roles(asked)
    if is_given and role in known:
        return role, rest
    if is_given and role.isidentifier() and not Path(spec).exists():
        raise unknown(f"--test {spec}: no role", role, known)
    split = re.match(r"shapes:(\w+)", spec)
    return next((r for r, name in known.items() if split and split[1] == name), ""), spec


def _training_set(train: Sequence[str], test: Sequence[str], embedded: bool, more: str) -> Dataset:
    if train:
        return _joined(tuple(train))
    if embedded:
        return _opened(f"shapes:aligned?rho=1&n=3200&part=train&{more}")
    return unlabelled(_joined(tuple(test)))


def _place(found: Sets, name: str, spec: str, role: str) -> None:
    """Add a test set by its role; one without a role is of cue conflicts where its file names give two cues, else plain."""
    data = by_class(_opened(spec))
    read = "as given"
    if is_corrupted(data) and role in ("", "corrupted"):
        if before := found.given.get("corrupted"):
            raise UserError(
                f"--test {spec}: only one corrupted set can be given; {before[0][0]} is already one"
            )
        found.given["corrupted"] = [(name, data)]
        how = "its folders are corruptions and severities"
        found.roles.append((name, f"corrupted ({how}), {len(data):,} images, {len(data.classes)} classes"))
        return
    if role == "corrupted":
        raise UserError(
            f"--test corrupted={spec}: its images do not lie in corruption/severity/class, as those of ImageNet-C"
        )
    if not role:
        conflicts = found.conflict is None and is_conflict(data)
        role = "conflict" if conflicts else "plain"
        read = "its file names give shape and texture" if conflicts else "no role was given"
    if role == "conflict":
        if found.conflict is not None:
            raise UserError(f"--test {spec}: {found.conflict[0]} is the conflict set already; give one")
        found.conflict = (name, data if data.labels is not None else _named_by_cues(data))
    else:
        found.test.append((name, data))
        if role != "plain":
            found.given.setdefault(role, []).append((name, data))
    labels = f"{len(data.classes)} classes" if data.labels is not None else "no labels"
    found.roles.append((name, f"{role} ({read}), {len(data):,} images, {labels}"))


def _hold_out(found: Sets, train: Sequence[str], seed: int) -> None:
    """Part of the training set becomes the test set where no other plain one was given; no probe is fitted on it."""
    whole = found.train
    if whole.labels is None or len(whole) < 2:
        return
    count = min(max(len(whole.classes), len(whole) // HELD_OUT), len(whole) // 2)
    held = chosen(whole, np.ones(len(whole), bool), count, seed)
    found.train = whole.select(np.setdiff1d(np.arange(len(whole)), held))
    one_cue = {id(d) for sets in found.given.values() for _, d in sets}
    name = short_names(train)[0] if len(train) == 1 else "held out"
    found.test = [(name, whole.select(held)), *((n, d) for n, d in found.test if id(d) in one_cue)]
    text = f"plain, {len(held):,} of {len(whole):,} images of --train, held out: no other plain test set was given"
    found.roles = [*(pair for pair in found.roles if pair[0] != name), (name, text)]


@lru_cache(maxsize=64)
def _overlap(train: Dataset, test: Dataset) -> Overlap:
    return check_overlap(train, test)


def overlaps(found: Sets) -> dict[str, Overlap]:
    """Test images that are training images, by content; a set of nothing else is refused."""
    out = {}
    given = {name for name, _ in found.roles}  # the embedded sets that are added are made from other numbers
    for name, data in [*found.test, *([found.conflict] if found.conflict else [])]:
        if found.embedded and name not in given:
            continue
        shared = _overlap(found.train, data)
        refuse_same(shared, name)
        if shared.count:
            out[name] = shared
    return out


def same_palette(train: Sequence[str]) -> str:
    """The palette of the embedded training set, for the embedded test sets to share."""
    return "&palette=one" if any(re.search(r"[?&]palette=one(&|$)", spec) for spec in train) else ""


@lru_cache(maxsize=64)
def _opened(spec: str) -> Dataset:
    data = open_data(spec)
    warn_of_set(data, [spec], names=False)  # coverage.py says it with the number of images
    return data


@lru_cache(maxsize=8)
def _joined(specs: tuple[str, ...]) -> Dataset:
    data = open_data(specs)
    warn_of_set(data, specs, names=False)
    return data


def forget() -> None:
    """Sets are opened once for all models of an audit, and again for the next audit."""
    _opened.cache_clear()
    _named_by_cues.cache_clear()
    _joined.cache_clear()
    _overlap.cache_clear()


def short_names(specs: Sequence[str]) -> list[str]:
    """The last part of each that says something, without its ending; longer where two would be the same."""
    for depth in (1, 2, 3):
        found = [_short(spec, depth) for spec in specs]
        if len(set(found)) == len(found):
            return found
    return list(specs)


def _short(spec: str, depth: int) -> str:
    spec = split_classes(spec)[0]
    head = spec.partition("?")[0] if depth == 1 else spec
    parts = [p for p in head.rstrip("/").split("/") if p]
    while len(parts) > depth and parts[-depth] in PARTS:
        depth += 1
    return re.sub(r"\.(zip|tar|parquet)(?=[/?]|$)", "", "/".join(parts[-depth:])) or spec


def is_conflict(data: Dataset) -> bool:
    """Whether most file names give shape and texture (cat7-elephant1.png), of the set's own classes where it has some."""
    known = set(data.classes) or None
    found = [cues_in(data.name(i), known) for i in range(0, len(data), max(1, len(data) // 50))]
    named = [f for f in found if f is not None]
    if len(named) < 0.8 * len(found):
        return False
    return known is not None or len({s for s, _ in named} & {t for _, t in named}) >= 2


@lru_cache(maxsize=4)
def _named_by_cues(data: Dataset) -> Dataset:
    """Stimuli in one flat folder, labelled by the shape in their names."""
    found = [cues_in(data.name(i)) for i in range(len(data))]
    classes = tuple(sorted({c for cues in found if cues for c in cues}))
    labels = np.array([classes.index(cues[0]) if cues else 0 for cues in found], np.int64)
    return Dataset([Renamed(data, labels, classes)])


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
    """Cue-conflict images of the set's own classes, rendered when they are read."""
    name, data = base
    source = conflicts_of(data, limit, seed)
    return None if source is None else (f"cue conflicts made of {name}", Dataset([source]))


class Renamed(Relabelled):
    """A set with other labels; −1 where an image has none."""

    def content_key(self) -> str:
        return data_key(self.data)


def renamed(data: Dataset, labels: NDArray[np.int64], classes: tuple[str, ...]) -> Dataset:
    """The images whose label is not negative, by another numbering."""
    whole = Dataset([Renamed(data, np.maximum(labels, 0), classes)])
    return whole if (labels >= 0).all() else whole.select(labels >= 0)


def unlabelled(data: Dataset) -> Dataset:
    """The same images without labels."""
    return Dataset([Renamed(data, None, ())])
