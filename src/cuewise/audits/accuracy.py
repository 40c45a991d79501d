"""How many images of the test sets are classified correctly?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import Ids, Unasked
from cuewise.audits.answers import asked_on, needs_labelled, on_labelled
from cuewise.audits.audit import Finding, audit
from cuewise.audits.changed import lost
from cuewise.audits.coverage import left_out
from cuewise.audits.figures import figure, series, table
from cuewise.audits.kinds import Kind, accuracy_kind
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.probes import KNNProbe
from cuewise.probes.draws import over_both
from cuewise.probes.probe import top_hits
from cuewise.scores import Score, proportion, show_share

Right = NDArray[np.bool_]


@audit(
    "accuracy",
    "accuracy on each labelled test set: of the classifier, or of a linear and a k-NN probe",
    question="How often is it right, and does that carry over to other kinds of images?",
    rank=40,
    equation="accuracy = right answers / images",
    kinds=(
        accuracy_kind(
            "head/*/accuracy",
            "Own classifier's accuracy on {}",
            "Share of images whose class is the classifier's first answer.",
            card=4,
            panel="Accuracy: accuracy",
            zoo="images",
        ),
        Kind(
            "head_top5/*/accuracy",
            "Own classifier's top-5 accuracy on {}",
            "Share of images whose class is among the classifier's first five answers.",
            better="high",
        ),
        accuracy_kind(
            "linear/*",
            "Linear probe accuracy on {}",
            "Share of images whose class a linear classifier on the frozen features names; it is fitted on --train.",
            card=5,
            panel="Accuracy: accuracy",
            zoo="images",
        ),
        accuracy_kind(
            "knn/*",
            "k-NN accuracy on {}",
            "Share of images whose class the nearest training images, weighted by similarity, name.",
            card=18,
            zoo="images",
        ),
    ),
    needs=needs_labelled,
)
def accuracy(subject: Subject) -> Finding:
    """linear/… and knn/… (probes), or head/… with top-5, on every test set with labels; unknown classes are left out."""
    out = Finding()
    by_probe = subject.answers_by == "probe"
    found = on_labelled(subject, partial(by_probe_scores if by_probe else by_head_scores, subject), out.left)
    for name, data, (first, more, decisions) in found:
        guess = 1 / len(subject.classes_for(data))
        out.add(first, chance=guess)
        out.add(*more, chance=guess if by_probe else None)
        out.warnings += below_guessing([first], guess)
        out.tables[f"accuracy/{name}/decisions"] = decisions
    names = [name for name, _, _ in found]
    kinds = list(dict.fromkeys(s.name.partition("/")[0] for s in out.scores))
    groups = [[s for s in out.scores if s.name.startswith(f"{k}/")] for k in kinds]
    drawn = [series(f"{subject.name}: {k}", names, g) for k, g in zip(kinds, groups) if len(g) == len(names)]
    out.figures["accuracy"] = figure("bars", "Accuracy", "test set", *drawn)
    return out


def right_table(name: str, data: Dataset, index: Ids, right: Mapping[str, Right]) -> dict[str, Any]:
    """Which images are answered rightly, one column per score: what `compare` pairs models by."""
    columns = ["correct", *(score.partition("/")[0] for score in list(right)[1:])]
    images = [data.name(int(i)) for i in index]
    rows = [list(row) for row in zip(images, *(hits.tolist() for hits in right.values()))]
    title = f"Right answers on {name}, image by image"
    return table(title, ["image", *columns], rows, pairs=dict(zip(right, columns)))


def by_probe_scores(subject: Subject, name: str, data: Dataset) -> tuple[Score, list[Score], dict[str, Any]]:
    """A linear probe and weighted neighbours, both fitted on the training set."""
    answerer, labels = asked_on(subject, name, data)
    found = subject.features(data, name)
    own = labels[found.index]
    finite = np.asarray(np.isfinite(found.features).all(axis=1))
    rows = np.flatnonzero((own >= 0) & finite)
    if not (own >= 0).any():
        raise Unasked(f"{name}: no image of a class that the probe knows could be read")
    note = left_out(data, labels, found.index) + lost(np.where(finite[own >= 0], 1.0, np.nan))
    train = subject.train_features
    knn = subject.gathered(KNNProbe().fit(train.features, train.labels), data).probe
    X, y = found.features[rows], own[rows]
    scores, right = [], {}
    for probe, kind in ((answerer.probe, "linear"), (knn, "knn")):
        hits = right[f"{kind}/{name}"] = top_hits(probe.predict_proba(X), y)
        score = proportion(f"{kind}/{name}", int(hits.sum()), len(hits), probe.protocol + note)
        scores.append(over_both(score, [float(top_hits(p, y).mean()) for p in probe.drawn(X)]))
    return scores[0], scores[1:], right_table(name, data, found.index[rows], right)


def by_head_scores(subject: Subject, name: str, data: Dataset) -> tuple[Score, list[Score], dict[str, Any]]:
    """Top-1 of the model's own classifier, and top-5 where there are more than five classes."""
    answerer, labels = asked_on(subject, name, data)
    found = subject.features(data, name)
    own = labels[found.index]
    if not (own >= 0).any():
        raise Unasked(f"{name}: no image of a class that the classifier knows could be read")
    p = answerer.probabilities(found.features[own >= 0])
    finite = ~np.isnan(p).any(1)
    protocol = answerer.probe.protocol + left_out(data, labels, found.index)
    protocol += lost(np.where(finite, 1.0, np.nan))
    order, truth = np.argsort(-p[finite], axis=1, kind="stable"), own[own >= 0][finite]
    right = {
        f"{kind}/{name}/accuracy": (order[:, :k] == truth[:, None]).any(1)
        for kind, k in (("head", 1), ("head_top5", 5))
        if k == 1 or p.shape[1] > 5
    }
    scores = [proportion(score, int(hits.sum()), len(hits), protocol) for score, hits in right.items()]
    return scores[0], scores[1:], right_table(name, data, found.index[own >= 0][finite], right)


def below_guessing(scores: Sequence[Score], guess: float) -> list[str]:
    """A model that knows nothing guesses; one that is clearly worse was asked about other names."""
    return [
        f"{s.name}: {show_share(s.value)} is worse than guessing ({show_share(guess)}): do the folders of the training and the "
        "test images name the classes alike?"
        for s in scores
        if s.high < guess
    ]
