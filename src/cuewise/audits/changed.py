"""Right and wrong answers on changed copies of the test images, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cuewise import scores
from cuewise.audits.answerer import Unasked
from cuewise.audits.change import Change
from cuewise.audits.coverage import left_out
from cuewise.audits.measures import Right, right_on_copies
from cuewise.audits.subject import Subject
from cuewise.scores import Score


def right(subject: Subject, changes: Sequence[Change]) -> Right:
    """N×V: one row per image of the base set whose class the model knows, one column per change."""
    name, data = subject.base_set
    found = right_on_copies(subject.model, subject.answerer(data), data, changes)
    if not len(found):
        raise Unasked(f"{name} shares no class with the model's answers")
    return found


def chance(subject: Subject) -> float:
    """The accuracy of guessing on the base set."""
    return 1 / len(subject.classes_for(subject.base_set[1]))


def share(name: str, hits: Right, protocol: str) -> Score:
    """Accuracy of one column; images without a finite answer are left out and counted."""
    good = hits[~np.isnan(hits)]
    return scores.proportion(name, int(good.sum()), len(good), protocol + lost(hits))


def shares(subject: Subject, hits: Right, named: Mapping[str, str]) -> list[Score]:
    """The accuracy of each column N×V; `named`: the name of its score → what its copies are."""
    columns = zip(named.items(), hits.T)
    return [share(name, column, protocol_of(subject, what)) for (name, what), column in columns]


def mean_share(name: str, hits: Right, protocol: str) -> Score:
    """Mean accuracy over columns N×V; the interval is over images, whose copies are not independent."""
    good = hits[~np.isnan(hits).any(1)]
    values = good.mean(1)
    found = scores.mean(name, values, protocol + lost(hits))
    if not len(values) or values.std() > 0:
        return Score(name, found.value, max(0.0, found.low), min(1.0, found.high), found.n, found.protocol)
    # all equal: no spread to judge by, so as uncertain as that many single answers
    p, z2, n = found.value, scores.Z95**2, found.n
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = scores.Z95 / (1 + z2 / n) * (p * (1 - p) / n + z2 / (4 * n * n)) ** 0.5
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
    name, data = subject.base_set
    answerer = subject.answerer(data)
    count = int((answerer.labels(data) >= 0).sum())
    return f"{answerer.probe.protocol}; {what} of {count} images of {name}{others_left(subject)}"


def others_left(subject: Subject) -> str:
    """How many images of the set that the base set was cut from are of other classes, if any."""
    whole = subject.base_set[1] if subject.cut is None else subject.cut.whole
    return left_out(whole, subject.answerer(whole).labels(whole))


def difference(name: str, hits: Right, protocol: str) -> Score:
    """Mean of N×2, first minus second column, over images; the interval is that of paired answers.

    Half an observation of each outcome (both, neither, only the first, only the second) is added for the interval, as for
    differences of paired proportions (Agresti & Min 2005): it does not vanish where all answers agree.
    """
    good = hits[~np.isnan(hits).any(1)]
    apart = good[:, 0] - good[:, 1]
    n = len(apart) + 2
    centre = float(apart.sum()) / n
    half = scores.Z95 * float(np.sqrt(((apart @ apart + 1) / n - centre**2) / n))
    value = float(apart.mean()) if len(apart) else float("nan")
    low, high = min(value, max(-1.0, centre - half)), max(value, min(1.0, centre + half))
    return Score(name, value, low, high, len(apart), protocol + lost(hits))
