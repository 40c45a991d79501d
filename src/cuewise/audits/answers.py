"""What a model says about a labelled set: an answer for every image whose class it knows, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import Answerer, Ids, Unasked
from cuewise.audits.audit import Needs
from cuewise.audits.coverage import coverage, left_out
from cuewise.audits.figures import table
from cuewise.audits.measured import Measured
from cuewise.audits.subject import Named, Subject
from cuewise.data import Dataset

T = TypeVar("T")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """Row i is image index[i] of `data`: its label, the answer and C probabilities, by the numbering of `classes`."""

    name: str
    data: Dataset
    index: Ids
    labels: Ids
    response: Ids
    proba: Floats  # N×C; N×0 where only the answer is known
    classes: tuple[str, ...]
    protocol: str

    @property
    def correct(self) -> NDArray[np.bool_]:
        return self.response == self.labels

    def image_name(self, row: int) -> str:
        return self.data.name(int(self.index[row]))

    def named(self, row: int) -> tuple[str, str]:
        """The true class and the answer."""
        return self.classes[self.labels[row]], self.classes[self.response[row]]

    def part(self, rows: Ids) -> Answers:
        """Some of the rows."""
        kept = {name: getattr(self, name)[rows] for name in ("index", "labels", "response", "proba")}
        return replace(self, **kept)


def labelled(subject: Subject) -> list[Named]:
    """Test sets with labels."""
    return [(n, d) for n, d in subject.test if d.labels is not None]


def needs_labelled(subject: Subject) -> Needs:
    """The labelled test sets, unchanged."""
    return Needs(sets=labelled(subject))


def on_labelled(
    subject: Subject, ask: Callable[[str, Dataset], T], left: dict[str, str]
) -> list[tuple[str, Dataset, T]]:
    """What is found on each labelled test set that can be asked about; raises Unasked where there is none.

    left: takes the other sets, by name, and why they are left out (`Finding.left`)
    """
    found, others = on_each(labelled(subject), ask)
    if not found and not others:
        raise Unasked("no labelled test set: give --test with one folder per class")
    left |= others
    return found


def on_each(
    sets: Sequence[Named], ask: Callable[[str, Dataset], T]
) -> tuple[list[tuple[str, Dataset, T]], dict[str, str]]:
    """What is found on each set that can be asked about, and why others cannot; raises Unasked where none can."""
    found, left = [], {}
    for name, data in sets:
        try:
            found.append((name, data, ask(name, data)))
        except Unasked as error:
            left[name] = str(error)
    if left and not found:
        raise Unasked("; ".join(dict.fromkeys(left.values())))
    return found, {name: why.removeprefix(f"{name} ") for name, why in left.items()}


def answers(subject: Subject, left: dict[str, str]) -> list[Answers]:
    """The subject's answers on each labelled test set that it knows a class of; raises Unasked where there is none.

    left: see `on_labelled`
    """
    return [found for _, _, found in on_labelled(subject, partial(answers_on, subject), left)]


def asked_on(subject: Subject, name: str, data: Dataset) -> tuple[Answerer, Ids]:
    """Who answers on a set, and its labels in the answers' classes; an error where no class is shared."""
    if data.labels is not None and (why := coverage(subject, data).nothing):
        raise Unasked(f"{name} {why}")
    answerer = subject.answerer(data)
    return answerer, answerer.labels(data)


def answers_on(subject: Subject, name: str, data: Dataset) -> Answers:
    """Answers on one set; an error where no class is shared or no answer is finite."""
    found = answers_of(subject.model, asked_on(subject, name, data)[0], data, name)
    if not len(found.index):
        raise Unasked(
            "the model gives NaN or infinity for every image; check its weights and its input range"
        )
    return found


def answers_of(model: Measured, answerer: Answerer, data: Dataset, name: str) -> Answers:
    """Answers on one set; images of other classes and those without a finite answer are left out and counted."""
    found = model.features(data, name)
    labels = answerer.labels(data)
    own = labels[found.index]
    proba = np.asarray(answerer.probabilities(found.features), np.float64)
    silent = np.isnan(proba).any(1) & (own >= 0)
    rows = np.flatnonzero((own >= 0) & ~silent)
    text = f"{answerer.probe.protocol}; {name}{left_out(data, labels, found.index)}"
    text += f"; {int(silent.sum())} images without a finite answer left out" if silent.any() else ""
    kept = proba[rows]
    total = kept.sum(1, keepdims=True)
    if (np.abs(total - 1) > 1e-3).any():  # means over outputs of a classifier with further classes
        kept = kept / np.where(total > 0, total, 1)
        text += f", probabilities scaled to sum 1 over its {len(answerer.classes)} classes"
    best = kept.argmax(1)
    return Answers(name, data, found.index[rows], own[rows], best, kept, answerer.classes, text)


def decisions_table(answers: Answers, title: str, **columns: Sequence[Any]) -> dict[str, Any]:
    """image, label, response, correct and further columns, one row per image: what `compare` pairs models by."""
    fixed = [
        [answers.image_name(i) for i in range(len(answers.index))],
        [answers.classes[k] for k in answers.labels],
        [answers.classes[k] for k in answers.response],
        answers.correct.tolist(),
    ]
    rows = [list(row) for row in zip(*fixed, *columns.values())]
    return table(title, ["image", "label", "response", "correct", *columns], rows)


def mistake(
    subject: Subject, answers: Answers, row: int, name: str, badge: str, more: str = ""
) -> dict[str, Any]:
    """An item of a gallery: an image that the model took for another class; `more` ends its caption."""
    truth, response = answers.named(row)
    return subject.item(
        answers.data.image(int(answers.index[row])),
        name,
        f"{truth}: answered {response}{more}",
        badge,
        f"an image of {truth} that the model took for {response}",
        of=answers.image_name(row),
    )
