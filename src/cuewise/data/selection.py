"""A part of a set by what is known of its images: `?objects=2`, `?per_class=900`, `?longtail=100`, `?n=500`, `?seed=3`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.dataset import Dataset
from cuewise.data.openers import is_outside
from cuewise.data.part_of_set import PartOfSet
from cuewise.data.sample import Facts
from cuewise.data.subset import read_list
from cuewise.errors import UserError

SEARCH = 8  # steps of the search for a long tail of images with several classes
KEYS = ("objects", "per_class", "longtail", "n", "seed")


@dataclass(frozen=True)
class Selection:
    """What is kept; applied in the order of the fields.

    classes    a list of object classes (a file, or one that comes with cuewise)
    objects    images with at least that many distinct classes
    per_class  classes that at least that many images have
    longtail   ratio of the images of the most frequent class to those of the rarest, falling exponentially between
    n          that many images
    seed       of what is drawn at random
    """

    classes: str | None = None
    objects: int | None = None
    per_class: int | None = None
    longtail: float | None = None
    n: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, given: dict[str, str], spec: str) -> Selection:
        """From what the user typed."""
        values: dict[str, Any] = {}
        for key, text in given.items():
            try:
                number = float(text) if key == "longtail" else int(text)
            except ValueError:
                raise UserError(f"{spec}: {key} must be a number, not {text!r}") from None
            least = 0 if key == "seed" else 1
            if not number >= least:
                raise UserError(f"{spec}: {key} must be {least} or more, not {text}")
            values[key] = number
        if "seed" in values and not {"longtail", "n"} & set(values):
            raise UserError(f"{spec}: seed has a meaning with n or longtail only")
        return cls(**values)


class Selected(PartOfSet):
    """The images of a set that a selection keeps; classes that it drops are dropped from labels and boxes."""

    def __init__(self, whole: Dataset, selection: Selection, spec: str) -> None:
        self.whole, self.selection, self.spec = whole, selection, spec
        known = presence(whole)
        names = whole.object_classes or whole.classes
        found = Choice(np.arange(len(whole)), np.arange(len(names)))
        if selection.classes is not None:
            lines = read_list(selection.classes)
            listed = {*lines, *(line.split()[0] for line in lines)}
            found.classes = np.array([k for k, name in enumerate(names) if name in listed], np.int64)
            if missing := [c for c in lines if not {c, c.split()[0]} & set(names)]:
                raise UserError(f"{spec}: of the list {selection.classes}, {missing[0]!r} is no class here")
            found.images = found.images[known[:, found.classes].any(1)]
        needs = [k for k in ("objects", "per_class", "longtail") if getattr(selection, k) is not None]
        if needs and not len(names):
            raise UserError(f"{spec}: {needs[0]} needs classes: a folder per class, or annotations")
        narrow(known, found, selection.objects or 0, selection.per_class or 0)
        rng = np.random.default_rng([selection.seed, 89])
        if selection.longtail is not None:
            found.images, found.ratio = long_tail(known, found, selection.longtail, rng)
        if selection.n is not None:
            if selection.n > len(found.images):
                raise UserError(f"{spec}: n={selection.n}, and there are {len(found.images)} images")
            found.images = np.sort(rng.choice(found.images, selection.n, replace=False))
        if not len(found.images):
            raise UserError(f"{spec}: no image is left; ask for less")
        self.rows, self.kept, self.ratio = found.images, found.classes, found.ratio
        self._take(whole)

    def _take(self, whole: Dataset) -> None:
        annotated = bool(whole.object_classes)
        self.object_classes = tuple(whole.object_classes[k] for k in self.kept) if annotated else ()
        keep_labels = annotated or whole.labels is None
        self.classes = whole.classes if keep_labels else tuple(whole.classes[k] for k in self.kept)
        self.labels: NDArray[np.int64] | None = None
        if whole.labels is not None:
            own = whole.labels[self.rows]
            self.labels = own if keep_labels else np.searchsorted(self.kept, own).astype(np.int64)
        self.columns: dict[str, NDArray[Any]] = {k: v[self.rows] for k, v in whole.columns.items()}

    def facts(self, i: int) -> Facts:
        """What is known of the image, of the kept classes."""
        found = super().facts(i)
        if len(self.kept) == len(self.whole.object_classes):
            return found
        labels = None if found.labels is None else found.labels[self.kept]
        boxes = found.boxes
        if boxes is not None:
            boxes = boxes.select(np.isin(boxes.classes, self.kept))
            boxes = replace(boxes, classes=np.searchsorted(self.kept, boxes.classes).astype(np.int64))
        return replace(found, labels=labels, boxes=boxes, masked=None)  # its numbers are those of all classes

    def fingerprint(self) -> dict[str, Any]:
        """That of the selected images, and how they were selected."""
        found = self.whole.select(self.rows).fingerprint()
        about: dict[str, Any] = {"selection": self.spec.partition("?")[2], "kept": len(self)}
        about |= {"ratio": self.ratio} if self.ratio is not None else {}
        return {**found, "sources": [{**source, **about} for source in found["sources"]]}


@dataclass
class Choice:
    """Images and classes that are left, and the ratio of a long tail as it came out."""

    images: NDArray[np.int64]
    classes: NDArray[np.int64]
    ratio: float | None = field(default=None)


def presence(data: Dataset) -> NDArray[np.bool_]:
    """N×C: which classes each image has, from its annotations or else from its label."""
    names = data.object_classes or data.classes
    known = np.zeros((len(data), len(names)), bool)
    if data.object_classes:
        for i in range(len(data)):
            labels = data.facts(i).labels
            if labels is not None:
                known[i] = labels
    elif data.labels is not None:
        known[np.arange(len(data)), data.labels] = True
    return known


def narrow(known: NDArray[np.bool_], found: Choice, objects: int, per_class: int) -> None:
    """Drop images and classes until both conditions hold of what is left (M79)."""
    while objects or per_class:
        left = known[np.ix_(found.images, found.classes)]
        images = found.images[left.sum(1) >= max(objects, 1)]
        classes = found.classes[known[np.ix_(images, found.classes)].sum(0) >= per_class]
        if len(images) == len(found.images) and len(classes) == len(found.classes):
            return
        found.images, found.classes = images, classes


def long_tail(
    known: NDArray[np.bool_], found: Choice, ratio: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], float]:
    """Images whose class counts fall by `ratio` from the most frequent class to the rarest (M89), and the ratio reached.

    Class of rank k may keep n_max · r^(−k/(C−1)) images. Images come in random order, those of rare classes first, and are
    taken as long as none of their classes is full. With one class per image r is `ratio`, and exact; where images have
    several, a frequent class ends with the rare ones it occurs with, and a larger r is searched that gives the ratio.
    """
    left = known[np.ix_(found.images, found.classes)]
    counts = left.sum(0)
    order = np.lexsort((rng.random(len(counts)), -counts))
    ranks = np.empty(len(counts), np.int64)
    ranks[order] = np.arange(len(counts))
    rarest = np.where(left, ranks[None, :], -1).max(1, initial=-1)
    rows = sorted(rng.permutation(len(left)).tolist(), key=lambda row: -rarest[row])

    def taken(r: float) -> tuple[NDArray[np.int64], float]:
        share = ranks / max(1, len(counts) - 1)
        free = np.minimum(np.maximum(1, np.round(counts.max(initial=0) * r**-share)), counts).astype(np.int64)
        kept = []
        for row in rows:
            own = left[row]
            if own.any() and (free[own] > 0).all():
                free[own] -= 1
                kept.append(row)
        final = left[kept].sum(0)
        final = final[final > 0]
        return np.sort(np.array(kept, np.int64)), float(final.max() / final.min()) if len(final) else 1.0

    tries = [taken(ratio)]
    low, high = ratio, ratio**3
    for _ in range(SEARCH):
        if tries[-1][1] > 0.95 * ratio and len(tries) == 1:
            break
        middle = (low * high) ** 0.5
        tries.append(taken(middle))
        low, high = (middle, high) if tries[-1][1] < ratio else (low, middle)
    kept, reached = min(tries, key=lambda t: abs(np.log(t[1] / ratio)))
    return found.images[kept], reached


def split_selection(spec: str) -> tuple[str, dict[str, str]]:
    """'DIR?set=val&objects=2' → 'DIR?set=val', {'objects': '2'}; nothing where a file is called so.

    n, seed and objects are options of `shapes` itself, and of a package.module:Name.
    """
    if "?" not in spec or os.path.exists(os.path.expanduser(spec)):
        return spec, {}
    head, _, query = spec.partition("?")
    own = re.match(r"shapes($|:)", head) or is_outside(head)
    mine = ("per_class", "longtail") if own else KEYS
    given, rest = {}, []
    for part in query.split("&"):
        key, equals, value = part.partition("=")
        if equals and key in mine:
            given[key] = value
        else:
            rest.append(part)
    return head + ("?" + "&".join(rest) if rest else ""), given
