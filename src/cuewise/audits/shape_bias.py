"""Where shape and texture disagree, which does the model follow?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuewise.audits.answerer import NO_ANSWER, Ids, Unasked
from cuewise.audits.audit import Finding, Needs, Subject, audit
from cuewise.audits.decisions import Decision, cues_in, shape_bias_scores
from cuewise.audits.figures import figure, series
from cuewise.audits.head import imagenet16
from cuewise.audits.score import people
from cuewise.data import Dataset
from cuewise.scores import Score, proportion

SHOWN = 12
PUBLISHED = 1280  # images of the published set


@dataclass
class Asked:
    """Decisions on the images that could be asked about; `rows` are their places in the set."""

    decisions: list[Decision]
    rows: list[int]
    unnamed: int = 0  # names that do not tell shape and texture
    uncovered: int = 0  # a cue of a class that the model does not know
    silent: int = 0  # no finite answer

    @property
    def skipped(self) -> str:
        parts = [
            (self.unnamed, "whose name does not tell the cues"),
            (self.uncovered, "with a class the model does not know"),
            (self.silent, "without a finite answer"),
        ]
        said = ", ".join(f"{n} images {why}" for n, why in parts if n)
        return f"; left out: {said}" if said else ""


@audit(
    "shape_bias",
    "shape or texture, on images in which they disagree",
    lambda subject: Needs(sets=[subject.conflict] if subject.conflict else []),
)
def shape_bias(subject: Subject) -> Finding:
    """Decisions on conflict images: shape bias, both accuracies, the table by class, examples, people beside them."""
    if subject.conflict is None:
        raise Unasked(
            "no cue-conflict images: give a --test set named <shape><i>-<texture><j>.png, or labelled classes"
        )
    name, data = subject.conflict
    answerer = subject.answerer(data)
    found = subject.features(data, name)
    said = answerer.say(found.features)
    asked = decide(data, found.index, said, answerer.classes)
    if not asked.decisions:
        raise Unasked(f"{name}: no image can be asked about{asked.skipped}")
    protocol = (
        f"{answerer.probe.protocol}; {name}, {len(answerer.classes)} classes{standard(data)}{asked.skipped}"
    )
    scores, table = shape_bias_scores(asked.decisions, protocol)
    table["skipped"] = asked.unnamed + asked.uncovered + asked.silent
    out = Finding([*scores, cue_accuracy(asked.decisions, protocol)])
    out.tables["shape_bias/classes"] = table
    out.tables["shape_bias/decisions"] = {
        "title": "Every decision",
        "columns": ["image", "shape", "texture", "response"],
        "rows": [[d.image, d.shape, d.texture, d.response] for d in asked.decisions],
    }
    drawn = [_series(subject.name, table)]
    if subject.settings.human is not None:
        drawn += [beside(out, subject, asked.decisions)]
    label = "shape / (shape + texture)"
    out.figures["shape_bias"] = figure(
        "bars", "Shape bias by shape class", "class of the shape", *drawn, ylabel=label
    )
    out.galleries["shape_bias"] = examples(subject, data, asked)
    return out


def decide(data: Dataset, index: Ids, said: Ids, classes: Sequence[str]) -> Asked:
    """Names of the cues from the set's columns or from file names; answers of images whose two cues are known."""
    asked = Asked([], [])
    known = set(classes)
    for i, answer in zip(index.tolist(), said.tolist()):
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


def standard(data: Dataset) -> str:
    """The phrase that lets a report put published values beside the score: all of the published images, no others."""
    whole = len(data) == PUBLISHED and set(data.classes) == set(imagenet16())
    return " (standard 16-class cue-conflict)" if whole else ""


def cue_accuracy(decisions: Sequence[Decision], protocol: str) -> Score:
    """Share of conflict images for which shape or texture was named."""
    asked = [d for d in decisions if d.shape != d.texture]
    return proportion(
        "cue_accuracy", sum(d.response in (d.shape, d.texture) for d in asked), len(asked), protocol
    )


def beside(out: Finding, subject: Subject, asked: Sequence[Decision]) -> dict[str, Any]:
    """Decisions of people on the same images."""
    assert subject.settings.human is not None
    stems = {_stem(d.image) for d in asked}
    own = [d for d in people(subject.settings.human) if _stem(d.image) in stems]
    if not own:
        raise Unasked(f"--human {subject.settings.human}: no decision on an image of this set")
    scores, table = shape_bias_scores(
        own, f"decisions of people on the same images ({subject.settings.human.name})"
    )
    out.scores += [replace(s, name=f"human/{s.name}") for s in scores]
    out.tables["shape_bias/human"] = {
        **table,
        "title": f"People: {table['title'][0].lower()}{table['title'][1:]}",
    }
    return _series("people", table)


def _stem(image: str) -> str:
    return image.rpartition("/")[2].rpartition(".")[0] or image.rpartition("/")[2]


def _series(name: str, table: dict[str, Any]) -> dict[str, Any]:
    rows = [(r[0], proportion("", r[2], r[2] + r[3], "")) for r in table["rows"]]
    return series(name, [r[0] for r in rows], [s for _, s in rows])


def examples(subject: Subject, data: Dataset, asked: Asked) -> dict[str, Any]:
    """Some conflict images with what was said."""
    items = []
    pick = np.random.default_rng(subject.seed).permutation(len(asked.decisions))[:SHOWN]
    for n, j in enumerate(pick):
        d = asked.decisions[j]
        verdict = "shape" if d.response == d.shape else "texture" if d.response == d.texture else "other"
        items.append(
            {
                "image": subject.picture(data.image(asked.rows[j]), f"conflict-{n}"),
                "caption": f"shape {d.shape}, texture {d.texture}: said {d.response}",
                "badge": verdict,
                "alt": f"conflict image with the shape of {d.shape} and the texture of {d.texture}",
            }
        )
    return {"title": "Shape against texture: what the model said", "items": items}
