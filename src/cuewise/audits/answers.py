"""What a model says about a labelled set: probabilities for every image whose class it knows, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.audit import Subject
from cuewise.data import Dataset

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Row i is image index[i] of `data`: its label and C probabilities, by the numbering of `classes`."""

    name: str
    data: Dataset
    index: Ids
    labels: Ids
    proba: Floats  # N×C
    classes: tuple[str, ...]
    protocol: str

    @property
    def response(self) -> Ids:
        return self.proba.argmax(1)

    @property
    def correct(self) -> NDArray[np.bool_]:
        return self.response == self.labels

    def image_name(self, row: int) -> str:
        return self.data.name(int(self.index[row]))


def known_labels(data: Dataset, classes: Sequence[str]) -> Ids | None:
    """Each image's label by the numbering of `classes`, −1 where it is not among them; None without labels."""
    if data.labels is None:
        return None
    number = {name: i for i, name in enumerate(classes)}
    return np.array([number.get(name, -1) for name in data.classes], np.int64)[data.labels]


def answers(subject: Subject) -> list[Answers]:
    """The subject's answers on each test set that shares a class with it; sets that share none are left out."""
    out = []
    for name, data in subject.test:
        wanted = known_labels(data, subject.train.classes)
        if wanted is None or not (wanted >= 0).any():
            continue
        found = subject.features(data, name)
        labels = wanted[found.index]
        rows = np.flatnonzero(labels >= 0)
        if len(rows):
            proba = np.asarray(subject.probe.predict_proba(found.features[rows]), np.float64)
            protocol = f"{subject.probe.protocol}; {name}"
            out.append(
                Answers(name, data, found.index[rows], labels[rows], proba, subject.train.classes, protocol)
            )
    return out


def decisions_table(said: Answers, title: str, **columns: Sequence[Any]) -> dict[str, Any]:
    """image, label, response, correct and further columns, a row an image: what `compare` pairs models by."""
    fixed = [
        [said.image_name(i) for i in range(len(said.index))],
        [said.classes[k] for k in said.labels],
        [said.classes[k] for k in said.response],
        said.correct.tolist(),
    ]
    return {
        "title": title,
        "columns": ["image", "label", "response", "correct", *columns],
        "rows": [list(row) for row in zip(*fixed, *columns.values())],
    }
