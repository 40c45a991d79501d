"""Right and wrong on changed copies of the test images, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cuewise import scores
from cuewise.audits.answerer import NO_ANSWER, Unasked
from cuewise.audits.audit import Subject
from cuewise.audits.change import Change
from cuewise.scores import Score

Right = NDArray[np.float64]  # 1 right, 0 wrong, NaN no finite answer; a row an image whose class is known


def right(subject: Subject, changes: Sequence[Change]) -> Right:
    """N×V: one row an image of the base set whose class the model knows, one column a change."""
    if subject.base is None:
        raise Unasked("no plain labelled test set to make changed copies of: give --test")
    name, data = subject.base
    labels = subject.answerer(data).labels(data)
    columns = []
    for change in changes:
        index, said = subject.said(change)
        known = labels[index] >= 0
        hit = (said == labels[index]).astype(np.float64)
        columns.append(np.where(said == NO_ANSWER, np.nan, hit)[known])
    found = np.stack(columns, 1)
    if not len(found):
        raise Unasked(f"{name} shares no class with the model's answers")
    return found


def share(name: str, hits: Right, protocol: str) -> Score:
    """Accuracy of one column; images without a finite answer are left out and counted."""
    good = hits[~np.isnan(hits)]
    return scores.proportion(name, int(good.sum()), len(good), protocol + lost(hits))


def mean_share(name: str, hits: Right, protocol: str) -> Score:
    """Mean accuracy over columns N×V; the interval is over images, whose copies are not independent."""
    good = hits[~np.isnan(hits).any(1)]
    values = good.mean(1)
    found = scores.mean(name, values, protocol + lost(hits))
    if not len(values) or values.std() > 0:
        return Score(name, found.value, max(0.0, found.low), min(1.0, found.high), found.n, found.protocol)
    # all alike: no spread to judge by, so as uncertain as that many single answers
    p, z2, n = found.value, scores.Z95**2, found.n
    centre, half = (
        (p + z2 / (2 * n)) / (1 + z2 / n),
        scores.Z95 / (1 + z2 / n) * (p * (1 - p) / n + z2 / (4 * n * n)) ** 0.5,
    )
    return Score(name, p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)), n, found.protocol)


def lost(hits: Right) -> str:
    """How many images have no finite answer, if any."""
    count = int(np.isnan(hits).any(axis=tuple(range(1, hits.ndim))).sum())
    if count and count == len(hits):
        raise Unasked(
            "the model gives NaN or infinity for every image; check its weights and its input range"
        )
    return f"; {count} images without a finite answer left out" if count else ""


def protocol_of(subject: Subject, what: str) -> str:
    """Who answered, on what."""
    assert subject.base is not None
    name, data = subject.base
    labels = subject.answerer(data).labels(data)
    unknown = int((labels < 0).sum())
    left = f"; {unknown} images of other classes left out" if unknown else ""
    return (
        f"{subject.answerer(data).probe.protocol}; {what} of {len(labels) - unknown} images of {name}{left}"
    )
