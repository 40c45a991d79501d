"""Which images does the model find similar?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise import scores
from cuewise.audits.answerer import Ids, Unasked
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.figures import figure, series, table
from cuewise.audits.kinds import Kind
from cuewise.audits.measures import cues_of, inseparable
from cuewise.audits.subject import Named, Subject
from cuewise.data import Dataset
from cuewise.encoders.embed import Embeddings

K = 5
QUERIES = 6
CHUNK = 1024  # queries at a time


@audit(
    "retrieval",
    "the nearest images: how often they share the class, or the shape or texture in conflicts",
    question="Which images does it find similar?",
    rank=90,
    kinds=(
        Kind(
            "retrieval/class",
            "Neighbours of the same class",
            "Mean share of the 5 nearest images that have the class of the query.",
            better="high",
        ),
        Kind(
            "retrieval/shape",
            "Neighbours of the same shape",
            "Mean share of the 5 nearest conflict images that have the shape of the query.",
        ),
        Kind(
            "retrieval/texture",
            "Neighbours of the same texture",
            "Mean share of the 5 nearest conflict images that have the texture of the query.",
        ),
    ),
    needs=lambda s: Needs(sets=[searched(s), *s.conflicts]),
    needs_answers=False,
)
def retrieval(subject: Subject) -> Finding:
    """Cosine neighbours on pooled features among the images of the first test set (else the training set)."""
    out = Finding()
    name, data = searched(subject)
    found = finite(subject.features(data, name))
    near = neighbours(found.features, K)
    if near.shape[1] == 0:
        raise Unasked(f"{name}: fewer than two readable images")
    protocol = _protocol(near, name)
    names, shares = [data.name(int(i)) for i in found.index], same(found.labels, near)
    if data.labels is not None:
        _score(out, "retrieval/class", shares, found.labels, protocol)
    words = [data.classes[k] if k >= 0 else "" for k in found.labels]
    items = _rows(subject, data, found.index, near, names, words)
    out.galleries["retrieval"] = {"title": f"Nearest images, {name}", "layout": "rows", "items": items}
    if subject.conflict is not None:
        _conflicts(out, subject)
    if out.scores:
        drawn = series(subject.name, [s.name.partition("/")[2] for s in out.scores], out.scores)
        title = f"What the {K} nearest images share with the query"
        out.figures["retrieval"] = figure("bars", title, "", drawn, ylabel="share of neighbours")
    if data.labels is not None:
        out.tables["retrieval/decisions"] = table(
            "Share of neighbours of the same class, image by image",
            ["image", "same class"],
            [[n, round(float(v), 6)] for n, v in zip(names, shares)],
            pairs={"retrieval/class": "same class"},
        )
    return out


def searched(subject: Subject) -> Named:
    """The set that is searched: the first test set, else the training set."""
    return subject.test[0] if subject.test else ("the training set", subject.train)


def finite(found: Embeddings) -> Embeddings:
    """The rows whose features are numbers."""
    good = np.isfinite(found.features).all(1)
    return replace(found, features=found.features[good], index=found.index[good], labels=found.labels[good])


def neighbours(features: NDArray[np.float32], k: int) -> Ids:
    """N×k rows with the greatest cosine to each row, itself left out, nearest first."""
    z = F.normalize(torch.from_numpy(np.asarray(features, np.float32)), dim=1)
    k = min(k, len(z) - 1)
    parts = []
    for start in range(0, len(z), CHUNK):
        likeness = z[start : start + CHUNK] @ z.T
        here = torch.arange(len(likeness))
        likeness[here, here + start] = -torch.inf
        parts.append(likeness.topk(k, dim=1).indices)
    return torch.cat(parts).numpy()


def same(labels: Ids, near: Ids) -> NDArray[np.float64]:
    """Share of each image's neighbours that have its label."""
    return np.asarray((labels[near] == labels[:, None]).mean(1), np.float64)


def chance(labels: Ids) -> float:
    """How often another image drawn at random has the label of the query."""
    counts = np.bincount(labels - labels.min())
    n = len(labels)
    return float((counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else float("nan")


def _protocol(near: Ids, name: str) -> str:
    return (
        f"cosine on pooled features, {near.shape[1]} nearest of {len(near)} images of {name}, query left out"
    )


def _score(out: Finding, name: str, shares: NDArray[np.float64], labels: Ids, protocol: str) -> None:
    guess = chance(labels)
    found = scores.mean(name, shares, f"{protocol}; chance {guess:.3f}")
    out.add(found, chance=guess if np.isfinite(guess) else None)


def _conflicts(out: Finding, subject: Subject) -> None:
    """Where cues disagree, do neighbours share the query's shape or its texture? This needs no probe and no labels."""
    assert subject.conflict is not None
    name, data = subject.conflict
    found = finite(subject.features(data, name))
    cues = [cues_of(data, int(i), set()) for i in found.index]
    rows = np.array([i for i, c in enumerate(cues) if c is not None and c[0] != c[1]], np.int64)
    if len(rows) < 2:
        return
    if why := inseparable([(c[0], c[1]) for c in (cues[i] for i in rows) if c is not None]):
        out.left |= {f"retrieval/{cue}": why for cue in ("shape", "texture")}
        return
    near = neighbours(found.features[rows], K)
    protocol = _protocol(near, name)
    columns: dict[str, Any] = {"image": [data.name(int(found.index[i])) for i in rows]}
    for place, cue in enumerate(("shape", "texture")):
        lines = [c[place] for c in (cues[i] for i in rows) if c is not None]
        labels = np.unique(lines, return_inverse=True)[1].astype(np.int64)
        shares = same(labels, near)
        columns[cue] = shares.round(6).tolist()
        _score(out, f"retrieval/{cue}", shares, labels, protocol)
    out.tables["retrieval/conflicts/decisions"] = table(
        f"Share of neighbours with the same cue, {name}",
        ["image", "same shape", "same texture"],
        [list(row) for row in zip(*columns.values())],
        pairs={"retrieval/shape": "same shape", "retrieval/texture": "same texture"},
    )


def _rows(
    subject: Subject, data: Dataset, index: Ids, near: Ids, names: list[str], words: list[str]
) -> list[dict[str, Any]]:
    """Query and neighbours, one row each; the same queries for every model."""
    items = []
    order = np.argsort(np.asarray(names), kind="stable")  # by name, so that a skipped file moves nothing
    for row, q in enumerate(order[np.random.default_rng(subject.seed).permutation(len(order))[:QUERIES]]):
        for place, i in enumerate([q, *near[q]]):
            alike = words[i] == words[q]
            badge = "query" if place == 0 else "" if not words[q] else "same" if alike else "other"
            text = words[i] or names[i]
            alt = f"query: {text}" if place == 0 else f"neighbour {place} of {names[q]}: {text}"
            picture, called = data.image(int(index[i])), f"retrieval-{row}-{place}"
            items.append(subject.item(picture, called, text, badge, alt, of=names[i], row=names[q]))
    return items
