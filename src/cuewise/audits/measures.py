"""Quantities that audits and studies share: accuracy, answers on copies, decisions on conflicts, classes near chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import NO_ANSWER, Answerer, Ids, Unasked
from cuewise.audits.change import Change
from cuewise.audits.decisions import Decision, cues_in, shape_bias_scores
from cuewise.audits.measured import Measured
from cuewise.data import Dataset
from cuewise.probes.draws import over_both
from cuewise.scores import Score, proportion

Right = NDArray[np.float64]  # 1 right, 0 wrong, NaN no finite answer; one row per image whose class is known
FEWEST = 5  # images that a class is judged by
NEAR_CHANCE = 2.0  # a class is near chance below so many times the chance level …
BIN = 0.025  # … or below this accuracy, the bound of the published analysis of 1000 classes


def right_on_copies(model: Measured, answerer: Answerer, data: Dataset, changes: Sequence[Change]) -> Right:
    """N×V: one row per image whose class the model knows, one column per change."""
    labels = answerer.labels(data)
    known = model.answers(data, answerer, changes)
    columns = []
    for change in changes:
        index, answers = known[change]
        hit = np.where(answers == NO_ANSWER, np.nan, (answers == labels[index]).astype(np.float64))
        columns.append(hit[labels[index] >= 0])
    return np.stack(columns, 1)


def answered(labels: Ids, answers: Ids) -> NDArray[np.bool_]:
    """Images that accuracies are over: their class is known and the answer is finite."""
    return (labels >= 0) & (answers != NO_ANSWER)


def accuracy(model: Measured, answerer: Answerer, data: Dataset, name: str = "accuracy") -> Score:
    """Accuracy on the images whose class the model knows; all its classes stay in the choice of answers."""
    found = model.features(data)
    labels = answerer.labels(data)[found.index]
    answers = answerer.say(found.features)
    rows = answered(labels, answers)
    score = proportion(name, int((answers == labels)[rows].sum()), int(rows.sum()), answerer.probe.protocol)
    return over_both(
        score, [float((a == labels)[rows].mean()) for a in answerer.drawn(found.features) if rows.any()]
    )


def class_accuracies(model: Measured, answerer: Answerer, data: Dataset) -> dict[str, tuple[int, int]]:
    """class → (right answers, images), of the classes that the set has and the model knows."""
    found = model.features(data)
    labels = answerer.labels(data)[found.index]
    return by_class(labels, answerer.say(found.features), answerer.classes)


def by_class(labels: Ids, answers: Ids, classes: Sequence[str]) -> dict[str, tuple[int, int]]:
    """class → (right answers, answered images), of the classes with an answered image."""
    rows = answered(labels, answers)
    images = np.bincount(labels[rows], minlength=len(classes))
    right = np.bincount(labels[rows & (answers == labels)], minlength=len(classes))
    return {name: (int(right[k]), int(images[k])) for k, name in enumerate(classes) if images[k]}


def judged_classes(found: Mapping[str, tuple[int, int]]) -> dict[str, float]:
    """class → accuracy, of the classes with enough images to judge them by."""
    return {name: right / images for name, (right, images) in found.items() if images >= FEWEST}


def near_chance_bound(classes: int) -> float:
    """The accuracy below which a class is near chance, among so many classes."""
    return max(BIN, NEAR_CHANCE / max(1, classes))


@dataclass
class Asked:
    """Decisions on the images that could be asked about; `rows` are their places in the set."""

    decisions: list[Decision]
    rows: list[int]
    unnamed: int = 0  # names from which shape and texture cannot be read
    uncovered: int = 0  # a cue of a class that the model does not know
    silent: int = 0  # no finite answer

    @property
    def skipped(self) -> str:
        parts = [
            (self.unnamed, "whose name does not give the cues"),
            (self.uncovered, "with a class the model does not know"),
            (self.silent, "without a finite answer"),
        ]
        text = ", ".join(f"{n} images {why}" for n, why in parts if n)
        return f"; left out: {text}" if text else ""


def conflict_scores(
    model: Measured, answerer: Answerer, data: Dataset, name: str = "conflicts", note: str = ""
) -> tuple[list[Score], dict[str, Any], Asked]:
    """shape_bias, shape_accuracy, texture_accuracy and cue_accuracy, the table by class, and the decisions.

    Images whose two cues are equal are dropped and counted in the table.
    """
    found = model.features(data, name)
    asked = decide(data, found.index, answerer.say(found.features), answerer.classes)
    if not asked.decisions:
        raise Unasked(f"{name}: no image can be asked about{asked.skipped}")
    protocol = f"{answerer.probe.protocol}; {name}, {len(answerer.classes)} classes{note}{asked.skipped}"
    scores, table = _conflict_scores(asked.decisions, protocol)
    table["skipped"] = asked.unnamed + asked.uncovered + asked.silent
    redrawn = [decide(data, found.index, a, answerer.classes) for a in answerer.drawn(found.features)]
    values = [[s.value for s in _conflict_scores(a.decisions, "")[0]] for a in redrawn]
    return [over_both(s, [row[i] for row in values]) for i, s in enumerate(scores)], table, asked


def _conflict_scores(decisions: Sequence[Decision], protocol: str) -> tuple[list[Score], dict[str, Any]]:
    scores, table = shape_bias_scores(decisions, protocol)
    return [*scores, cue_accuracy(decisions, protocol)], table


def decide(data: Dataset, index: Ids, answers: Ids, classes: Sequence[str]) -> Asked:
    """Names of the cues from the set's columns or from file names; answers of images whose two cues are known."""
    asked = Asked([], [])
    known = set(classes)
    for i, answer in zip(index.tolist(), answers.tolist()):
        cues = cues_of(data, i, known)
        if cues is None:
            asked.unnamed += 1
        elif not set(cues) <= known:
            asked.uncovered += 1
        elif answer == NO_ANSWER:
            asked.silent += 1
        else:
            asked.decisions.append(Decision(data.name(i), *cues, classes[answer]))
            asked.rows.append(i)
    return asked


def cues_of(data: Dataset, i: int, known: set[str]) -> tuple[str, str] | None:
    """Shape and texture of an image."""
    if {"shape", "texture"} <= set(data.columns) and data.classes:
        shape, texture = (int(data.columns[c][i]) for c in ("shape", "texture"))
        if 0 <= shape < len(data.classes) and 0 <= texture < len(data.classes):
            return data.classes[shape], data.classes[texture]
    return cues_in(data.name(i), known | set(data.classes)) or cues_in(data.name(i))


PAIRED = "combine each shape with several textures"


def inseparable(cues: Sequence[tuple[Any, Any]]) -> str:
    """Why images of the same shape are those of the same texture, so that neighbours cannot distinguish the two cues; empty
    where they are not. With two classes it is always so where the cues conflict."""
    pairs = set(cues)
    shapes, textures = ({pair[k] for pair in pairs} for k in (0, 1))
    if not len(pairs) == len(shapes) == len(textures):
        return ""
    return (
        f"all images of a shape have one texture and the other way round ({len(shapes)} shapes), so that what is near in "
        f"shape is near in texture as well; {'three classes are needed' if len(shapes) < 3 else PAIRED}"
    )


def cue_accuracy(decisions: Sequence[Decision], protocol: str) -> Score:
    """Share of conflict images for which shape or texture was named."""
    asked = [d for d in decisions if d.shape != d.texture]
    named = sum(d.response in (d.shape, d.texture) for d in asked)
    return proportion("cue_accuracy", named, len(asked), protocol)
