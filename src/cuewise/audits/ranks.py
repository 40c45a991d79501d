"""How high does the model rank the shape and the texture of an image among all labels that it knows?

The shape bias is a ratio of decisions: it does not say how much of either cue a model sees. The mean reciprocal rank over
the whole label space does: 1 where the cue's label always comes first, near 0 where it could be any label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cuewise import scores
from cuewise.audits.answerer import Answerer, Unasked
from cuewise.audits.answers import asked_on
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.coverage import conflict_coverage, left_out
from cuewise.audits.figures import figure, series
from cuewise.audits.head import Grouped, Head
from cuewise.audits.kinds import Kind
from cuewise.audits.measures import cues_of
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.probes.probe import Features

Ranks = NDArray[np.float64]
FEWEST = 3  # labels: with two, the rank of one cue is known from that of the other
# role of a set → the cue its label names
ONE_CUE = {"silhouette": "shape", "sketch": "shape", "shape": "shape", "texture": "texture"}


def single(subject: Subject) -> list[tuple[str, str, Dataset]]:
    """(role, name, set) of the given sets in which one cue is left."""
    return [(role, name, data) for role in ONE_CUE for name, data in subject.given.get(role, [])]


def needed(subject: Subject) -> Needs:
    return Needs(sets=[*subject.conflicts, *((name, data) for _, name, data in single(subject))])


@audit(
    "ranks",
    "mean reciprocal rank of the shape and of the texture label among all labels",
    question="How much of the shape and of the texture does it see at all?",
    topic="shape_bias",
    rank=12,
    equation="MRR = mean over images of 1 / (rank of the cue's label among all labels)",
    kinds=(
        Kind(
            "ranks/conflict/shape",
            "Rank of the shape (conflict images)",
            "Mean of 1 / rank of the shape's label among all labels of the model, where shape and texture disagree. 1 is "
            "always first.",
            unit="number",
            card=4,
            reading="1 is always first",
        ),
        Kind(
            "ranks/conflict/texture",
            "Rank of the texture (conflict images)",
            "Mean of 1 / rank of the texture's label among all labels of the model, where shape and texture disagree.",
            unit="number",
            card=5,
            reading="1 is always first",
        ),
        Kind(
            "ranks/*/shape",
            "Rank of the shape ({})",
            "Mean of 1 / rank of the right label on images in which the shape is left.",
            unit="number",
            better="high",
        ),
        Kind(
            "ranks/*/texture",
            "Rank of the texture ({})",
            "Mean of 1 / rank of the right label on images in which the texture is left.",
            unit="number",
        ),
    ),
    roles=dict.fromkeys(ONE_CUE, ""),
    needs=needed,
)
def ranks(subject: Subject) -> Finding:
    """Both cues on conflict images, and the right label where one cue is left."""
    if subject.conflict is None and not single(subject):
        raise Unasked(
            "no cue-conflict images and no set with one cue: give --test conflict=DATA or silhouette=DATA"
        )
    out = Finding()
    if subject.conflict is not None:
        name, data = subject.conflict
        count = all_labels(subject.answerer(data), subject.features(data, name).features)[0].shape[1]
        for cue, names in _cues(subject, data):
            if count < FEWEST:
                out.left[f"ranks/conflict/{cue}"] = (
                    f"the model knows {count} labels: where one cue is first the other is second, so that both ranks say "
                    "what the shape bias says"
                )
            else:
                _add(
                    out, f"ranks/conflict/{cue}", ranked(subject, data, name, names), _unknown(subject, data)
                )
    for role, name, data in single(subject):
        try:
            _, labels = asked_on(subject, name, data)
        except Unasked as error:
            out.left[name] = str(error).removeprefix(f"{name} ")
            continue
        names = [subject.answerer(data).classes[k] if k >= 0 else "" for k in labels]
        label = f"ranks/{name}/{ONE_CUE[role]}"
        _add(out, label, ranked(subject, data, name, names), left_out(data, labels))
    if not out.scores:
        reasons = dict.fromkeys(out.left.values())
        raise Unasked("; ".join(reasons) or "none of the sets shares a class with the model's answers")
    words = [s.name.removeprefix("ranks/").replace("/", ": ") for s in out.scores]
    drawn = series(subject.name, words, out.scores)
    out.figures["ranks"] = figure(
        "bars", "How high each cue is ranked", "images: cue", drawn, ylabel="mean 1 / rank"
    )
    return out


def _add(out: Finding, label: str, found: tuple[Ranks, float, str] | None, left: str) -> None:
    """The mean of the ranks, where there are any; left: what the protocol says of other images."""
    if found is not None:
        values, guess, protocol = found
        out.add(scores.mean(label, values, protocol + left), chance=guess)


def _unknown(subject: Subject, data: Dataset) -> str:
    """How many conflict images have a cue that the model does not know, if any."""
    count = conflict_coverage(subject, data).left if data.labels is not None else 0
    return f"; {count} images with a class the model does not know left out" if count else ""


def _cues(subject: Subject, data: Dataset) -> list[tuple[str, list[str]]]:
    """Shape and texture of each image in which they differ; "" for the others."""
    known = set(subject.answerer(data).classes)
    cues = [cues_of(data, i, known) for i in range(len(data))]
    apart = [c if c is not None and c[0] != c[1] and set(c) <= known else ("", "") for c in cues]
    return [(cue, [pair[k] for pair in apart]) for k, cue in enumerate(("shape", "texture"))]


def ranked(
    subject: Subject, data: Dataset, name: str, wanted: Sequence[str]
) -> tuple[Ranks, float, str] | None:
    """1 / rank of the wanted class of each readable image whose class is known, what guessing gives, the protocol."""
    answerer = subject.answerer(data)
    features = subject.features(data, name)
    p, groups = all_labels(answerer, features.features)
    rows = [
        (row, groups[wanted[i]])
        for row, i in enumerate(features.index.tolist())
        if wanted[i] in groups and np.isfinite(p[row]).all()
    ]
    if not rows:
        return None
    values = np.array([1 / rank_of(p[row], columns) for row, columns in rows])
    guess = float(np.mean([random_rank(p.shape[1], len(columns)) for _, columns in rows]))
    protocol = f"{answerer.probe.protocol}; {name}; rank among {p.shape[1]} labels, the best label of a class of several"
    return values, guess, protocol


def rank_of(p: NDArray[np.floating], columns: Sequence[int]) -> int:
    """The rank of the class's best label among those that are not its own; equal labels count as ahead."""
    best = p[list(columns)].max()
    others = np.delete(p, list(columns))
    return 1 + int((others >= best).sum())


def all_labels(
    answerer: Answerer, features: Features
) -> tuple[NDArray[np.float32], Mapping[str, Sequence[int]]]:
    """N×L over every label that the model knows, and which of them stand for each class."""
    probe = answerer.probe
    if isinstance(probe, Head):
        return probe.logits(features).cpu().numpy(), probe.classes
    if isinstance(probe, Grouped):
        return np.asarray(probe.probe.predict_proba(features), np.float32), probe.groups
    return answerer.probabilities(features), {name: (k,) for k, name in enumerate(answerer.classes)}


def random_rank(labels: int, own: int) -> float:
    """E[1 / rank] of the best of `own` among `labels` in random order, ranked among the others."""
    others = labels - own
    # P(no own label before r others): the first own label comes after exactly r of the others
    total, left = 0.0, 1.0
    for r in range(others + 1):
        here = left * own / (own + others - r)
        total += here / (1 + r)
        left -= here
    return total
