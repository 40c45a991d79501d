"""Does the model recognise both images of a pair that consists of the same parts in another arrangement?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import NO_ANSWER, Ids, Unasked
from cuewise.audits.answers import asked_on
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.coverage import left_out
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind, accuracy_kind
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.data.annotations.annotated import stem
from cuewise.scores import Score, proportion


def pairs_of(data: Dataset, labels: Ids) -> Ids:
    """P×2: images of the same file name in two classes; names with more or fewer images are no pairs."""
    named: dict[str, list[int]] = {}
    for i in np.flatnonzero(labels >= 0).tolist():
        named.setdefault(stem(data.name(i).rpartition("/")[2]), []).append(i)
    found = [rows for rows in named.values() if len(rows) == 2 and labels[rows[0]] != labels[rows[1]]]
    return np.array(found, np.int64).reshape(-1, 2)


def both_right(name: str, right: NDArray[np.bool_], protocol: str) -> tuple[Score, Score]:
    """P×2 → the share of pairs with two right answers, and the share of right answers."""
    pairs = proportion(f"anagrams/{name}both", int(right.all(1).sum()), len(right), protocol)
    return pairs, proportion(f"anagrams/{name}accuracy", int(right.sum()), right.size, protocol)


@audit(
    "anagrams",
    "both images of a pair right that consists of the same parts in another arrangement",
    question="Does it see the whole, or a bag of parts?",
    topic="robustness",
    rank=51,
    kinds=(
        accuracy_kind(
            "anagrams/*both",
            "Both of a pair right",
            "Share of pairs of images, made of the same parts in another arrangement, of which both are recognised (the "
            "configural shape score of Doshi et al. 2025). A bag of parts cannot tell the two of a pair apart.",
        ),
        Kind(
            "anagrams/*accuracy",
            "Accuracy on anagrams",
            "Share of correct answers on single images of the pairs.",
            better="high",
        ),
    ),
    roles={"anagrams": ""},
    needs=lambda subject: Needs(sets=subject.given.get("anagrams", [])),
)
def anagrams(subject: Subject) -> Finding:
    """Sets given as anagrams=DATA: one folder per class, the two images of a pair under the same name."""
    given = subject.given.get("anagrams", [])
    if not given:
        raise Unasked(
            "no pairs: give --test anagrams=DATA, one folder per class, the images of a pair named alike"
        )
    out = Finding()
    for name, data in given:
        answerer, labels = asked_on(subject, name, data)
        found = subject.features(data, name)
        answers = np.full(len(data), NO_ANSWER)
        answers[found.index] = answerer.say(found.features)
        pairs = pairs_of(data, labels)
        pairs = pairs[(answers[pairs] != NO_ANSWER).all(1)]
        if not len(pairs):
            raise Unasked(f"{name}: no two classes have an image of the same name, as the two of a pair have")
        left = int((labels >= 0).sum()) - pairs.size
        text = f"{answerer.probe.protocol}; {len(pairs)} pairs of {name}{left_out(data, labels)}"
        text += f"; {left} images without a partner left out" if left else ""
        part = "" if len(given) == 1 else f"{name}/"
        scores = both_right(part, answers[pairs] == labels[pairs], text)
        classes = len(answerer.classes)
        out.add(scores[0], chance=1 / classes**2)
        out.add(scores[1], chance=1 / classes)
    drawn = series(subject.name, [s.name.removeprefix("anagrams/") for s in out.scores], out.scores)
    title = "Pairs of the same parts"
    out.figures["anagrams"] = figure("bars", title, "what is right", drawn, ylabel="share")
    return out
