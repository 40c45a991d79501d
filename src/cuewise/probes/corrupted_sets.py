"""Test sets that lie on disk as ImageNet-C does: family/corruption/severity/class/image, or without the family."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES
from cuewise.data import Dataset
from cuewise.data.relabelled import Relabelled
from cuewise.errors import UserError
from cuewise.probes.mce import ALEXNET, mce
from cuewise.scores import Score, mean

NAMES = tuple(CORRUPTIONS)
COUNTED = tuple(c.name for c in CORRUPTIONS.values() if c.in_mce)
HARD = (3, 4, 5)
LOOKED_AT = 50  # names that tell whether a set is such a tree
PLACE = re.compile(rf"(?:^|/)({'|'.join(NAMES)})/([1-5])/([^/]+)/(.+)$")
IMAGENET, SIDE = 1000, 224  # classes and pixels that AlexNet's errors belong to
Hits = NDArray[np.float64]  # images × cells, 1 right, 0 wrong


@dataclass(frozen=True)
class Cells:
    """Answers by cell: which images each (corruption, severity) has in common with all others, and what is right of them."""

    cells: tuple[tuple[str, int], ...]
    hits: Hits  # images × cells
    left_out: int  # images that some cell lacks

    def part(self, names: tuple[str, ...], severities: tuple[int, ...] = SEVERITIES) -> Hits:
        return self.hits[:, [i for i, (c, s) in enumerate(self.cells) if c in names and s in severities]]

    @property
    def complete(self) -> bool:
        """Whether all 15 corruptions that count are there at all severities."""
        return {(c, s) for c in COUNTED for s in SEVERITIES} <= set(self.cells)


def by_class(data: Dataset) -> Dataset:
    """A tree of corrupted images labelled by its class folders, with the columns corruption and severity; others unchanged."""
    step = max(1, len(data) // LOOKED_AT)
    if data.object_classes or not all(PLACE.search(data.name(i)) for i in range(0, len(data), step)):
        return data
    found = [PLACE.search(data.name(i)) for i in range(len(data))]
    rows = np.array([i for i, m in enumerate(found) if m], np.int64)
    kept = [m for m in found if m]
    classes, labels = np.unique([m[3] for m in kept], return_inverse=True)
    columns: dict[str, NDArray[Any]] = {
        "corruption": np.array([NAMES.index(m[1]) for m in kept]),
        "severity": np.array([int(m[2]) for m in kept]),
    }
    whole = data if len(rows) == len(data) else data.select(rows)
    return Dataset([Relabelled(whole, labels.astype(np.int64), tuple(map(str, classes)), columns)])


def is_corrupted(data: Dataset) -> bool:
    """Whether `by_class` found a tree of corrupted images."""
    return {"corruption", "severity"} <= set(data.columns)


def ask_cells(data: Dataset, ask: Callable[[Dataset, str], tuple[NDArray[np.int64], Hits]]) -> Cells:
    """Each (corruption, severity) by itself, so that the features of one are held at a time.

    ask: a part of the set and its name → which of its images count, and whether each is answered rightly
    """
    pairs = sorted(set(zip(data.columns["corruption"].tolist(), data.columns["severity"].tolist())))
    found: list[dict[str, float]] = []
    for corruption, severity in pairs:
        part = data.select(
            (data.columns["corruption"] == corruption) & (data.columns["severity"] == severity)
        )
        rows, right = ask(part, f"{NAMES[corruption]} {severity}")
        found.append({_image(part.name(int(i))): float(hit) for i, hit in zip(rows, right)})
    shared = sorted(set.intersection(*(set(cell) for cell in found)))
    if not shared:
        raise UserError(
            "no image is there under every corruption and severity: give the set as it was published"
        )
    hits = np.array([[cell[image] for cell in found] for image in shared])
    seen = len(set.union(*(set(cell) for cell in found)))
    return Cells(tuple((NAMES[c], s) for c, s in pairs), hits, seen - len(shared))


def _image(name: str) -> str:
    """class/image, the same in every cell."""
    match = PLACE.search(name)
    assert match is not None
    return f"{match[3]}/{match[4]}"


def corrupted_scores(cells: Cells, name: str, protocol: str, classes: int, size: int) -> list[Score]:
    """All, by family, by severity, severities 3 to 5; mCE where AlexNet's errors hold. Intervals are over images."""
    lost = f"; {cells.left_out} images that a corruption lacks left out" if cells.left_out else ""

    def share(what: str, part: Hits) -> list[Score]:
        if not part.shape[1]:
            return []
        text = f"{protocol}/mean_of_{part.shape[1]}corruptions_x_severities{lost}"
        found = mean(f"top1/{name}{what}", part.mean(1), text)
        return [replace(found, low=max(0.0, found.low), high=min(1.0, found.high))]

    out = share("", cells.part(COUNTED))
    out += [s for family, names in FAMILIES.items() for s in share(f"/{family}", cells.part(names))]
    out += [s for k in SEVERITIES for s in share(f"/severity_{k}", cells.part(COUNTED, (k,)))]
    out += share("/severity_3to5", cells.part(COUNTED, HARD))
    if any(c not in COUNTED for c, _ in cells.cells):
        out += share("/all19", cells.part(NAMES))
    if cells.complete and classes == IMAGENET and size == SIDE:
        cube = np.stack([cells.part((c,)) for c in COUNTED], 1)  # N×15×5
        out.append(
            replace(mce(cube, COUNTED, ALEXNET, f"{protocol}/reference_alexnet{lost}"), name=f"mce/{name}")
        )
    return out
