"""How well does one clue alone predict the labels? Cross-validated, beside guessing and beside shuffled labels.

The classifier is a ridge regression on one-hot labels, of the standardised clue and of random Fourier features of it, so
that it also finds what is not linear. Its solution is linear in the labels: shuffled labels are further columns of the
same regression and cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.inspection.clue import Numbers
from cuewise.scores import Score, proportion

Ids = NDArray[np.int64]
FOLDS = 5
FOURIER = 192  # random features
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # of the mean squared error
SHUFFLES = 20
FEWEST = 5  # images per class, one for each fold


@dataclass(frozen=True)
class Judged:
    """What a clue alone gives away.

    accuracy   share of images whose class is predicted by a classifier that was fitted on other images
    majority   share of the most frequent class: what guessing gives
    shuffled   the same accuracy with shuffled labels: mean and highest of SHUFFLES
    predicted  the class per image, and by how much it was ahead of the second
    """

    accuracy: Score
    majority: float
    shuffled: tuple[float, float]
    predicted: Ids
    margin: NDArray[np.float32]

    @property
    def predicts(self) -> bool:
        """Whether the clue predicts better than guessing and than any shuffling, beyond the interval."""
        return bool(self.accuracy.low > max(self.majority, self.shuffled[1]))

    @property
    def unclear(self) -> bool:
        """Whether the interval lies above guessing, and a shuffling reached it too: with more images it may be shown."""
        return bool(self.accuracy.low > self.majority) and not self.predicts


def judge(clue: Numbers, labels: Ids, copies: Ids, name: str, seed: int = 0) -> Judged:
    """clue N×D, labels 0…C−1, copies: images of the same number stay in the same fold (copies of each other)."""
    rng = np.random.default_rng(seed)
    classes = int(labels.max()) + 1
    fold = folds_of(labels, copies, rng)
    x = expanded(clue, rng)
    shuffled = [rng.permutation(labels) for _ in range(SHUFFLES)]
    targets = np.concatenate([np.eye(classes, dtype=np.float32)[y] for y in (labels, *shuffled)], 1)
    outputs = crossed(x, targets, [labels, *shuffled], fold)
    hits = [float((outputs[:, k].argmax(1) == y).mean()) for k, y in enumerate((labels, *shuffled))]
    own = outputs[:, 0]
    top = np.partition(own, -2, axis=1)[:, -2:] if classes > 1 else np.zeros((len(own), 2), np.float32)
    distinct = len(np.unique(copies))
    protocol = (
        f"ridge regression on this clue and {FOURIER} random features of it, {FOLDS} folds by image, copies in one fold; "
        f"{len(labels)} images of {classes} classes; {SHUFFLES} shuffles of the labels"
    )
    score = proportion(name, round(hits[0] * distinct), distinct, protocol)
    score = Score(name, hits[0], score.low, score.high, distinct, protocol)
    counts = np.bincount(labels)
    spread = (float(np.mean(hits[1:])), max(hits[1:]))
    return Judged(score, float(counts.max() / len(labels)), spread, own.argmax(1), top[:, 1] - top[:, 0])


def folds_of(labels: Ids, copies: Ids, rng: np.random.Generator) -> Ids:
    """A fold per image: classes spread evenly, copies together."""
    _, first, group = np.unique(copies, return_index=True, return_inverse=True)
    order = np.lexsort((rng.random(len(first)), labels[first]))
    fold = np.empty(len(first), np.int64)
    fold[order] = np.arange(len(first)) % FOLDS
    return fold[group]


def expanded(clue: Numbers, rng: np.random.Generator) -> Numbers:
    """Standardised columns, random Fourier features at the scale of the data, and a constant."""
    missing = np.isnan(clue).any(axis=1).reshape(-1, 1)
    filled = np.where(missing, 0, clue)
    present = filled[~missing[:, 0]]
    spread = present.std(0) if len(present) else np.zeros(clue.shape[1])
    kept = spread > 1e-6
    z = np.where(missing, 0, (filled[:, kept] - present[:, kept].mean(0)) / spread[kept])
    parts = [z, np.ones((len(z), 1)), missing] if missing.any() else [z, np.ones((len(z), 1))]
    if kept.any():
        width = np.sqrt(2 * kept.sum())  # the typical distance of two standardised rows
        waves = rng.standard_normal((int(kept.sum()), FOURIER)) / (0.5 * width)
        parts.append(np.sqrt(2) * np.cos(z @ waves + rng.uniform(0, 2 * np.pi, FOURIER)))
    return np.concatenate(parts, 1).astype(np.float32)


def crossed(x: Numbers, targets: Numbers, labels: Sequence[Ids], fold: Ids) -> Numbers:
    """N×K×C outputs for K labellings, each image's from regressions that were fitted without its fold.

    The penalty is chosen on the next fold, separately for each labelling, with neither fold in the fit.
    """
    members = [np.flatnonzero(fold == f) for f in range(FOLDS)]
    grams = np.stack([x[m].T @ x[m] for m in members]).astype(np.float64)
    rights = np.stack([x[m].T @ targets[m] for m in members]).astype(np.float64)
    sizes = np.array([len(m) for m in members])
    ways = len(labels)
    out = np.zeros((len(x), ways, targets.shape[1] // ways), np.float32)
    for f, rows in enumerate(members):
        held = members[(f + 1) % FOLDS]
        inner = [k for k in range(FOLDS) if k not in (f, (f + 1) % FOLDS)]
        best = np.full(ways, -1.0)
        chosen = np.zeros(ways, np.int64)
        for p, penalty in enumerate(PENALTIES):
            tried = _outputs(x[held], grams[inner].sum(0), rights[inner].sum(0), penalty * sizes[inner].sum())
            tried = tried.reshape(len(held), ways, -1)
            hits = np.array([(tried[:, k].argmax(1) == y[held]).mean() for k, y in enumerate(labels)])
            chosen, best = np.where(hits > best, p, chosen), np.maximum(hits, best)
        outer = [k for k in range(FOLDS) if k != f]
        for p in np.unique(chosen):
            found = _outputs(
                x[rows], grams[outer].sum(0), rights[outer].sum(0), PENALTIES[p] * sizes[outer].sum()
            )
            out[np.ix_(rows, chosen == p)] = found.reshape(len(rows), ways, -1)[:, chosen == p]
    return out


def _outputs(x: Numbers, gram: NDArray[np.float64], right: NDArray[np.float64], penalty: float) -> Numbers:
    """x · (gram + penalty)⁻¹ · right."""
    weights = np.linalg.solve(gram + penalty * np.eye(len(gram)), right)
    return np.asarray(x @ weights.astype(np.float32), np.float32)
