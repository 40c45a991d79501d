"""Accuracy where one cue is left: on sets the user gave, on the embedded ones, or on copies made in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cuewise.audits.answerer import NO_ANSWER
from cuewise.audits.answers import asked_on, on_each
from cuewise.audits.audit import Audit, Finding, Needs
from cuewise.audits.change import CLEAN, Change, Copies, Input
from cuewise.audits.changed import chance, protocol_of, right, share
from cuewise.audits.figures import figure, series
from cuewise.audits.keys import data_key
from cuewise.audits.kinds import accuracy_kind
from cuewise.audits.measures import answered
from cuewise.audits.scenes import CHANGES
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.probes.draws import over_both
from cuewise.scores import Score

SHOWN = 6


def one_cue_audit(
    name: str,
    summary: str,
    change: Change,
    *,
    question: str,
    rank: int,
    citation: str,
    title: str,
    meaning: str,
    card: int,
    what: str = "",
    zoo: str = "",
    embedded: str = "",
) -> Audit:
    """An audit on the sets given as NAME=DATA, or on changed copies of the base set.

    title, meaning, card, zoo: of its scores (see `Kind`); what: the copies in words, where that is not the name; embedded:
    the split of the embedded shapes in which this cue is left
    """
    patterns = {f"{name}/accuracy": title, f"{name}/*/accuracy": f"{title}, {{}}"}
    panel = "Accuracy: accuracy"
    kinds = tuple(
        accuracy_kind(pattern, text, meaning, card=card, panel=panel, zoo=zoo)
        for pattern, text in patterns.items()
    )
    return Audit(
        name,
        summary,
        partial(ask, kind=name, change=change, what=what or name),
        question,
        "one_cue",
        rank,
        kinds,
        needs=partial(needs_of, kind=name, change=change),
        citation=citation,
        roles={name: embedded},
    )


def needs_of(subject: Subject, kind: str, change: Change) -> Needs:
    """The given sets, or copies of the base set."""
    given = subject.given.get(kind, [])
    return Needs(sets=given) if given else Needs(changes=[CLEAN, change])


def ask(subject: Subject, kind: str, change: Change, what: str) -> Finding:
    """Scores `<kind>/accuracy` (with the name of the set where there are several), bars, pictures."""
    given = subject.given.get(kind, [])
    out = Finding()
    if given:
        label = f"{kind}/accuracy" if len(given) == 1 else f"{kind}/{{}}/accuracy"
        found, left = on_each(given, lambda name, data: on_set(subject, name, data, label.format(name)))
        out.left |= left
        for _, data, score in found:
            out.add(score, chance=1 / len(subject.classes_for(data)))
        drawn = series(subject.name, [name for name, _, _ in found], out.scores)
        out.figures[kind] = figure("bars", f"Accuracy: {what}", "set", drawn)
        return out
    hits = right(subject, [CLEAN, change])
    protocol = protocol_of(subject, f"{what} copies")
    out.add(share(f"{kind}/accuracy", hits[:, 1], protocol), chance=chance(subject))
    out.galleries[kind] = gallery(subject, change, kind, what)
    clean = share("clean", hits[:, 0], protocol)
    drawn = series(subject.name, ["as it is", what], [clean, out.scores[0]])
    out.figures[kind] = figure("bars", f"Accuracy on {what} copies", "copies", drawn)
    return out


def on_set(subject: Subject, name: str, data: Dataset, label: str) -> Score:
    """Accuracy on a whole set; images of classes that the model does not know are left out and counted."""
    answerer, labels = asked_on(subject, name, data)
    found = subject.features(data, name)
    own = labels[found.index]
    answers = answerer.say(found.features)
    hits = np.where(answers == NO_ANSWER, np.nan, (answers == own).astype(np.float64))[own >= 0]
    known = len(set(labels[labels >= 0].tolist()))
    protocol = f"{answerer.probe.protocol}; {name}, {known} of {len(data.classes)} classes"
    dropped = int((own < 0).sum())
    protocol += f"; {dropped} images of other classes left out" if dropped else ""
    good = answered(own, answers)
    drawn = [float((a == own)[good].mean()) for a in answerer.drawn(found.features) if good.any()]
    return over_both(share(label, hits, protocol), drawn)


def gallery(subject: Subject, change: Change, kind: str, what: str) -> dict[str, Any]:
    """Some images beside their copies, as the model saw them, with its answers."""
    data = subject.base_set[1]
    answerer = subject.answerer(data)
    labels, (index, answers) = answerer.labels(data), subject.answers_to(change)
    taken, scenes = Input.of(subject.encoder), subject.model.scenes.get(data_key(data))
    render = Copies((taken,), (CLEAN, change), subject.seed, scenes)
    if change.cue in CHANGES and scenes is not None:
        index, answers = index[scenes.usable[index]], answers[scenes.usable[index]]
    items = []
    for n, row in enumerate(np.random.default_rng(subject.seed).permutation(len(index))[:SHOWN]):
        i = int(index[row])
        pair = render.views(data.image(i), data.name(i), i, render.attached(i))[taken.key]
        answer = answerer.classes[answers[row]] if answers[row] >= 0 else "nothing"
        true = answerer.classes[labels[i]] if labels[i] >= 0 else "another class"
        picture, badge = np.concatenate(list(pair), axis=1), "right" if answers[row] == labels[i] else "wrong"
        alt = f"an image of {true} and its {what} copy"
        items.append(subject.item(picture, f"{kind}-{n}", f"{true}: answered {answer}", badge, alt))
    return {"title": f"Images and their {what} copies", "items": items}
