"""Which classes does the model recognise by their texture alone?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits import one_cue
from cuewise.audits.answerer import NO_ANSWER, Unasked
from cuewise.audits.answers import Answers, answers_on, decisions_table
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import CLEAN, Copies, Input
from cuewise.audits.changed import others_left
from cuewise.audits.figures import figure, table
from cuewise.audits.kinds import Kind, accuracy_kind
from cuewise.audits.measures import BIN, FEWEST, by_class, judged_classes, near_chance_bound
from cuewise.audits.subject import Subject
from cuewise.audits.texture import COPY
from cuewise.scores import proportion

SUFFICIENT = 0.5  # a class above this is recognised by texture alone
SHOWN = 8  # classes with examples


@audit(
    "texture_classes",
    "per-class accuracy on texture copies; classes for which texture is enough",
    question="Which classes does it recognise by their texture alone?",
    rank=30,
    citation="Ge et al. 2021",
    kinds=(
        accuracy_kind(
            "texture_classes/accuracy",
            "Accuracy from texture, over classes",
            "Share of correct answers on images of texture alone.",
            zoo="textures",
        ),
        Kind(
            "texture_classes/sufficient_share",
            "Classes recognised by texture",
            "Share of the classes with an accuracy above 50 % from texture alone.",
        ),
        Kind(
            "texture_classes/near_none_share",
            "Classes near chance from texture",
            "Share of the classes whose accuracy from texture alone is below twice the chance level (at least 2.5 %).",
        ),
    ),
    roles={"texture": ""},
    needs=lambda subject: one_cue.needs_of(subject, "texture", COPY),
)
def texture_classes(subject: Subject) -> Finding:
    """Accuracy on textures given, or synthesised from the test images; the embedded classes have textures of their own."""
    answers = textures(subject)
    right = answers.correct
    rows, found = per_class(answers), counts(answers)
    known = judged_classes(found)
    if not known:
        most = max(images for _, images in found.values())
        raise Unasked(
            f"a class has at most {most} texture images, and {FEWEST} are needed to judge it: raise --limit"
        )
    few = len(rows) - len(known)
    accuracies = np.array(list(known.values()))
    bound = near_chance_bound(len(answers.classes))
    enough, none = int((accuracies > SUFFICIENT).sum()), int((accuracies < bound).sum())
    protocol = answers.protocol + (f"; {few} classes with fewer than {FEWEST} images left out" if few else "")
    out = Finding()
    total = proportion("texture_classes/accuracy", int(right.sum()), len(right), answers.protocol)
    out.add(total, chance=1 / len(answers.classes))
    for name, count, what in (
        ("sufficient_share", enough, f"above {SUFFICIENT:.0%}"),
        ("near_none_share", none, f"below {bound:.1%}"),
    ):
        text = f"classes with an accuracy {what}; {protocol}"
        out.add(proportion(f"texture_classes/{name}", count, len(known), text))
    columns = ["class", "images", "accuracy", "low", "high", "most often said"]
    out.tables["texture_classes"] = table("Accuracy from texture alone, by class", columns, rows)
    out.tables["texture_classes/decisions"] = {
        **decisions_table(answers, "Texture copies, image by image"),
        "pairs": {"texture_classes/accuracy": "correct"},
    }
    title = "Classes by their accuracy from texture alone"
    drawn = {"name": subject.name, **histogram(accuracies)}
    out.figures["texture_classes"] = figure(
        "histogram", title, "accuracy on texture copies", drawn, ylabel="classes"
    )
    out.galleries["texture_classes"] = examples(subject, answers, [r[0] for r in rows if r[0] in known])
    return out


def histogram(accuracies: NDArray[np.float64]) -> dict[str, list[float]]:
    """Edges 2.5 points apart and the number of classes between them; a class at an edge belongs to the bin above."""
    bins = round(1 / BIN)
    place = np.minimum((accuracies / BIN + 1e-9).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    return {"x": (np.arange(bins + 1) * BIN).round(6).tolist(), "y": counts.astype(float).tolist()}


def counts(answers: Answers) -> dict[str, tuple[int, int]]:
    """class → (right answers, images)."""
    return by_class(answers.labels, answers.response, answers.classes)


def per_class(answers: Answers) -> list[list[Any]]:
    """class, images, accuracy with its interval and the commonest answer; the classes best known by texture first."""
    rows: list[list[Any]] = []
    for name, (right, images) in counts(answers).items():
        own = answers.labels == answers.classes.index(name)
        share = proportion("", right, images, "")
        common = answers.classes[int(np.bincount(answers.response[own]).argmax())]
        rows.append([name, images, share.value, share.low, share.high, common])
    return sorted(rows, key=lambda r: (-r[2], str(r[0])))


def textures(subject: Subject) -> Answers:
    """Answers on the texture-only set the user gave, or on the texture copies that the texture audit looks at."""
    given = subject.given.get("texture", [])
    if given:
        return answers_on(subject, *given[0])
    name, data = subject.base_set
    answerer = subject.answerer(data)
    index, answers = subject.answers_to(COPY)
    labels = answerer.labels(data)[index]
    rows = np.flatnonzero((labels >= 0) & (answers != NO_ANSWER))
    if not len(rows):
        raise Unasked(f"{name} shares no class with the model's answers")
    protocol = (
        f"{answerer.probe.protocol}; texture copies of {len(rows)} images of {name}{others_left(subject)}"
    )
    none = np.empty((len(rows), 0))
    return Answers(name, data, index[rows], labels[rows], answers[rows], none, answerer.classes, protocol)


def examples(subject: Subject, answers: Answers, classes: list[str]) -> dict[str, Any]:
    """An image and its texture copy for the classes best known by texture; the given texture where it was given."""
    given = bool(subject.given.get("texture"))
    taken = Input.of(subject.encoder)
    render = Copies((taken,), (CLEAN, COPY), subject.seed)
    items = []
    for n, name in enumerate(classes[:SHOWN]):
        own = np.flatnonzero(answers.labels == answers.classes.index(name))
        row = int(own[np.argmax(answers.correct[own])])
        i = int(answers.index[row])
        shown: dict[str, Any] = {"texture": answers.data.image(i)}
        if not given:
            pair = render.views(answers.data.image(i), answers.data.name(i))[taken.key]
            shown = {"image": pair[0], "texture": pair[1]}
        for kind, picture in shown.items():
            caption, badge, alt = name, "", f"an image of {name}"
            if kind == "texture":
                caption, alt = f"{name}: answered {answers.named(row)[1]}", f"texture of {name}"
                badge = "right" if answers.correct[row] else "wrong"
            called, of = f"texture-class-{n}-{kind}", answers.image_name(row)
            items.append(subject.item(picture, called, caption, badge, alt, of=of, row=name))
    return {"title": "Classes best known by their texture", "layout": "tiles", "items": items}
