"""Which images of a labelled test set are judged: those whose class the classifier, or the probe, knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuewise.audits.answerer import Ids, Unasked, numbers
from cuewise.audits.audit import Audit
from cuewise.audits.measures import cues_of
from cuewise.audits.stimuli import made_conflicts
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.data.class_names import alike, listed, same_but_for
from cuewise.probes.probe import too_few


@dataclass(frozen=True)
class Coverage:
    """A labelled set as far as the model's answers know its classes.

    who     "the classifier" or "the probe"
    known, unknown  the classes of the set that have images
    left    images of unknown classes, of `images`; of a cue conflict both classes must be known
    answers the classes that are answered; none where it is not known which outputs of a classifier stand for which
    mapped  what a classifier without such a map needs, else ""
    """

    who: str
    known: tuple[str, ...]
    unknown: tuple[str, ...]
    left: int
    images: int
    answers: tuple[str, ...]
    mapped: str = ""

    def __str__(self) -> str:
        """One line, empty where every image is judged."""
        if not self.left:
            return ""
        total = len(self.known) + len(self.unknown)
        names = f" ({listed(self.known)})" if self.known else ""
        count = f"{self.who} knows {len(self.known)} of {total} classes{names}"
        return f"{count}; {self.left} of {self.images} images left out{self._cause}"

    @property
    def nothing(self) -> str:
        """Why no image of the set is judged; empty where one is."""
        if self.left < self.images or not self.images:
            return ""
        known = f", which knows {listed(self.answers)}" if self.answers else ""
        own = f"its classes are {listed(sorted({*self.known, *self.unknown}))}"
        return f"shares no class with {self.who}{known}; {own}{self._cause}{self.mapped}"

    @property
    def _cause(self) -> str:
        found = same_but_for(alike(self.unknown, self.answers))
        return f"; {found}" if found else ""


def coverage(subject: Subject, data: Dataset) -> Coverage:
    """What the model's answers know of a labelled set, by its list of images: nothing is decoded."""
    assert data.labels is not None
    who, needed = ("the classifier", "") if subject.answers_by == "head" else ("the probe", "")
    try:
        answers = subject.classes_for(data)
    except Unasked as error:
        given = subject.settings.class_map
        answers, needed = (tuple(given), "") if given is not None else ((), f"; {error}")
    own = numbers(data.classes, answers)
    there = [int(k) for k in np.unique(data.labels)]
    known, unknown = ([k for k in there if (own[k] >= 0) == wanted] for wanted in (True, False))
    left = int((own[data.labels] < 0).sum())
    names, others = (tuple(data.classes[k] for k in part) for part in (known, unknown))
    return Coverage(who, names, others, left, len(data), answers, needed)


def conflict_coverage(subject: Subject, data: Dataset) -> Coverage:
    """The same of cue-conflict images, whose shape and texture must both be known."""
    found = coverage(subject, data)
    answered = set(found.answers)
    cues = [c for i in range(len(data)) if (c := cues_of(data, i, answered)) is not None]
    named = sorted({name for pair in cues for name in pair})
    known, unknown = (tuple(n for n in named if (n in answered) == wanted) for wanted in (True, False))
    left = sum(not answered.issuperset(pair) for pair in cues)
    return Coverage(found.who, known, unknown, left, len(cues), found.answers, found.mapped)


def coverages(subject: Subject) -> dict[str, Coverage]:
    """Of every labelled set that was given; those that are added or made hold known classes alone."""
    if subject.answers_by == "nothing":
        return {}
    given = {name for name, _ in subject.roles}
    out = {n: coverage(subject, d) for n, d in subject.asked if n in given and d.labels is not None}
    for name, data in subject.conflicts:
        if name in out and made_conflicts(data) is None:
            out[name] = conflict_coverage(subject, data)
    return out


def uncovered(subject: Subject, questions: Sequence[Audit]) -> list[str]:
    """Warnings to read before a score: images left out of sets, training classes whose names differ only in case or spaces.

    Nothing where no answers are asked for: neighbours and similarities use every image.
    """
    if not any(q.needs_answers for q in questions):
        return []
    lines = [f"{name}: {found}" for name, found in coverages(subject).items() if found.left]
    if subject.answers_by == "probe" and subject.train.labels is not None:
        twins = same_but_for(alike(subject.train.classes, subject.train.classes))
        lines += [f"the training images: {twins}, or they are learnt as two classes"] if twins else []
        lines += [few] if (few := too_few(subject.train.labels, subject.train.classes)) else []
    return lines


def left_out(data: Dataset, labels: Ids, index: Ids | None = None) -> str:
    """For the protocol of a score on a set: how many classes it is on, and how many images of others were left out.

    labels: of all images by the numbering of the answers, −1 where it is not known; index: the images that could be read
    """
    assert data.labels is not None
    read = labels if index is None else labels[index]
    dropped = int((read < 0).sum())
    if not dropped:
        return ""
    known, there = np.unique(data.labels[labels >= 0]), np.unique(data.labels)
    return f"; {len(known)} of {len(there)} classes; {dropped} images of other classes left out"


def stated_once(lines: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """(model, lines) → each line once, with the names of the models that it is about unless it is about all of them."""
    found: dict[str, list[str]] = {}
    for model, own in lines:
        for line in own:
            found.setdefault(line, []).append(model)
    return [
        line if len(models) == len(lines) else f"{', '.join(models)}: {line}"
        for line, models in found.items()
    ]
