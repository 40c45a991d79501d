"""Where shape and texture disagree, which does the model follow?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.decisions import Decision, shape_bias_scores
from cuewise.audits.figures import figure, series, table
from cuewise.audits.head import imagenet16
from cuewise.audits.kinds import AuditOption, Kind, Reference
from cuewise.audits.measures import Asked, conflict_scores
from cuewise.audits.reference import NAME, Validity, guessing, validity
from cuewise.audits.score import people
from cuewise.audits.stimuli import made_conflicts
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.scores import Score, proportion, show_share, show_span

SHOWN = 12
PUBLISHED = 1280  # images of the published set
STANDARD = "standard 16-class cue-conflict"  # in the protocol where all of the published images were used, and no others
MOSTLY = 0.6  # of the images in which one of the cues is named; below, the headline says so
VALID = 0.5  # of generated images in which one of the cues is named, of the share of sources for a reference; below, no headline


def human_file(typed: str) -> Path:
    """The decisions of people; a file that does not exist is refused now."""
    if not Path(typed).is_file():
        raise UserError(
            f"--human {typed}: no such file; give a CSV with subject,image,shape,texture,response"
        )
    return Path(typed)


def headline(name: str, scores: Mapping[str, Score]) -> str:
    """Which of shape and texture one model relies on; empty where that was not measured."""
    bias = scores.get("shape_bias")
    if bias is None or not math.isfinite(bias.value):
        return ""
    share = f"follows shape in {show_share(bias.value)} of its decisions"
    if not (math.isfinite(bias.low) and math.isfinite(bias.high)):
        return f"Where shape and texture disagree, {name} {share}; how certain that is was not measured."
    if bias.low > 0.5:
        verdict = "relies on shape more than on texture"
    elif bias.high < 0.5:
        verdict = "relies on texture more than on shape"
    else:
        verdict = "shows no clear preference between shape and texture"
    certainty = f"95 % interval {show_span(bias.low, bias.high)}, n = {bias.n:,}"
    return f"{name} {verdict}: where the two disagree it {share} ({certainty}){_neither(scores)}."


def _neither(scores: Mapping[str, Score]) -> str:
    """A caution when the model mostly names neither cue, since then the bias rests on a few of the images."""
    parts = [scores.get(name) for name in ("shape_accuracy", "texture_accuracy")]
    named = sum(s.value for s in parts if s is not None)
    if None in parts or not named < MOSTLY:
        return ""
    return f"; in {show_share(1 - named)} of the images it names neither cue"


DECISIONS = "Decisions for shape and for texture: share of images"


@audit(
    "shape_bias",
    "shape or texture, on images in which they disagree",
    question="Where shape and texture disagree, which does the model follow?",
    rank=10,
    citation="Geirhos et al. 2019",
    equation="shape bias = decisions for shape / (decisions for shape + decisions for texture)",
    kinds=(
        Kind(
            "shape_bias",
            "Shape bias",
            "Decisions for the shape among all decisions for the shape or the texture, on images in which the two "
            "belong to different classes. 50 % is no preference.",
            card=1,
            chance=0.5,
            leads=True,
            panel="Shape bias: shape / (shape + texture)",
            references=tuple(
                Reference(who, value, STANDARD)
                for who, value in (
                    ("ResNet-50", 0.22),
                    ("GoogLeNet", 0.31),
                    ("ResNet-50 on stylised images", 0.81),
                    ("humans", 0.96),
                )
            ),
        ),
        Kind(
            "shape_bias/*",
            "Shape bias of {}",
            "Shape bias of one subject of a table of decisions.",
            chance=0.5,
        ),
        Kind(
            "shape_accuracy",
            "Decisions for shape",
            "Share of the conflict images whose shape is named.",
            card=2,
            panel=DECISIONS,
        ),
        Kind(
            "texture_accuracy",
            "Decisions for texture",
            "Share of the conflict images whose texture is named.",
            card=3,
            panel=DECISIONS,
        ),
        Kind(
            "cue_accuracy",
            "Decisions for either cue",
            "Share of the conflict images of which the shape or the texture is named at all: low where the images are "
            "hard to recognise.",
        ),
        Kind("human/*", "People: {}", "The same from decisions of people on the same images."),
    ),
    options=(
        AuditOption(
            "human",
            "a CSV of people's decisions on the cue-conflict images, shown beside the model's",
            human_file,
        ),
    ),
    headline=headline,
    needs=lambda subject: Needs(sets=subject.conflicts),
)
def shape_bias(subject: Subject) -> Finding:
    """Decisions on conflict images: shape bias, both accuracies, the table by class, examples, people beside them."""
    if subject.conflict is None:
        if subject.base is not None:
            raise Unasked(
                f"no cue-conflict images: none can be made of {subject.base[0]}, of whose classes fewer than two are known"
            )
        raise Unasked(
            "no cue-conflict images: give a --test set named <shape><i>-<texture><j>.png, or labelled classes"
        )
    name, data = subject.conflict
    answerer = subject.answerer(data)
    scores, classes, asked = conflict_scores(subject.model, answerer, data, name, standard(data))
    out = Finding()
    out.add(scores[0], chance=0.5)
    guess = 1 / len(answerer.classes)
    out.add(*scores[1:3], chance=guess)
    out.add(scores[3], chance=min(1.0, 2 * guess))
    made = made_conflicts(data)
    if made is not None:
        train = subject.train if subject.answers_by == "probe" else None
        found = validity(made, train, subject.seed)
        how = f"validity by a {NAME}" if found else "validity not checked: too few other labelled images"
        out.scores = [replace(s, protocol=f"{s.protocol}; home-made, {how}") for s in out.scores]
        judge_validity(out, scores[3], len(made.classes), len(answerer.classes), found)
    out.tables["shape_bias/classes"] = classes
    rows = [[d.image, d.shape, d.texture, d.response] for d in asked.decisions if d.shape != d.texture]
    out.tables["shape_bias/decisions"] = table(
        "Every decision", ["image", "shape", "texture", "response"], rows
    )
    drawn = [_series(subject.name, classes)]
    if subject.option("human") is not None:
        drawn += [beside(out, subject, asked.decisions)]
    label = "shape / (shape + texture)"
    out.figures["shape_bias"] = figure(
        "bars", "Shape bias by shape class", "class of the shape", *drawn, ylabel=label
    )
    out.galleries["shape_bias"] = examples(subject, data, asked)
    return out


def judge_validity(
    out: Finding, named: Score, classes: int, choices: int, reference: Validity | None
) -> None:
    """Home-made images count only where they can be read: by a reference half as often as it recognises their unchanged
    sources, by the model in half of them, and by both clearly more often than by guessing.

    classes, choices: among how many the reference and the model choose
    """
    own = f"this model in {show_share(named.value)} of {named.n} (guessing: {show_share(min(1.0, 2 / choices))})"
    judged = "no reference could be fitted (too few other labelled images); recognised by"
    text = f"home-made conflict images: {f'{reference};' if reference else judged} {own}"
    out.notes |= dict.fromkeys(("shape_bias", "shape_accuracy", "texture_accuracy"), text)
    unread = named.value < VALID or named.low <= min(1.0, 2 / choices)
    if reference is None:
        out.withheld["shape_bias"] = (
            "its conflict images were made from the test set, and there are too few other labelled images to check "
            "whether they can be recognised"
        )
    elif unread or not _valid(reference, classes):
        out.withheld["shape_bias"] = f"{text}; too few to say what the model relies on"


def _valid(reference: Validity, classes: int) -> bool:
    """Whether an outsider recognises the stimuli, as far as it recognises what they were made of."""
    named, sources = reference.named, reference.sources
    return named.low > guessing(classes) and named.value >= VALID * sources.value


def standard(data: Dataset) -> str:
    """The phrase that lets a report put published values beside the score: all of the published images, no others."""
    whole = len(data) == PUBLISHED and set(data.classes) == set(imagenet16())
    return f" ({STANDARD})" if whole else ""


def beside(out: Finding, subject: Subject, asked: Sequence[Decision]) -> dict[str, Any]:
    """Decisions of people on the same images."""
    file: Path = subject.option("human")
    stems = {_stem(d.image) for d in asked}
    own = [d for d in people(file) if _stem(d.image) in stems]
    if not own:
        raise Unasked(f"--human {file}: no decision on an image of this set")
    scores, classes = shape_bias_scores(own, f"decisions of people on the same images ({file.name})")
    out.scores += [replace(s, name=f"human/{s.name}") for s in scores]
    title = f"People: {classes['title'][0].lower()}{classes['title'][1:]}"
    out.tables["shape_bias/human"] = {**classes, "title": title}
    return _series("people", classes)


def _stem(image: str) -> str:
    return image.rpartition("/")[2].rpartition(".")[0] or image.rpartition("/")[2]


def _series(name: str, classes: dict[str, Any]) -> dict[str, Any]:
    scores = [proportion("", shape, shape + texture, "") for _, _, shape, texture, *_ in classes["rows"]]
    return series(name, [row[0] for row in classes["rows"]], scores)


def examples(subject: Subject, data: Dataset, asked: Asked) -> dict[str, Any]:
    """Some conflict images with the model's answers; images with equal cues are no evidence and are not shown."""
    items = []
    order = np.random.default_rng(subject.seed).permutation(len(asked.decisions))
    pick = [j for j in order if asked.decisions[j].shape != asked.decisions[j].texture][:SHOWN]
    for n, j in enumerate(pick):
        d = asked.decisions[j]
        verdict = "shape" if d.response == d.shape else "texture" if d.response == d.texture else "other"
        caption = f"shape {d.shape}, texture {d.texture}: answered {d.response}"
        alt = f"conflict image with the shape of {d.shape} and the texture of {d.texture}"
        items.append(subject.item(data.image(asked.rows[j]), f"conflict-{n}", caption, verdict, alt))
    return {"title": "Shape against texture: what the model answered", "items": items}
