"""What a probe is: inert constructor, fit, predict, score."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError, unknown
from cuewise.scores import Score, proportion

Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Probe(ABC):
    """A classifier on features with scikit-learn's contract; what `fit` learns ends in an underscore.

    Constructors store their arguments unchanged. `classes_` are the labels, in the order of the columns of
    `predict_proba`: whole numbers stand for themselves (0 … the largest), other labels are sorted.
    """

    classes_: NDArray[Any]

    @property
    @abstractmethod
    def protocol(self) -> str:
        """Name of the protocol with its settings; it is part of every score."""

    @abstractmethod
    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        """Learn from N×D features and N labels; rows of one group are never on both sides of a split."""

    @abstractmethod
    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        """N×C probabilities of `classes_`."""

    def drawn(self, X: Features) -> list[NDArray[np.float32]]:
        """Probabilities of the same probe on each draw of its training images; none where it has no draws."""
        return []

    def predict(self, X: Features) -> NDArray[Any]:
        """The most probable label of each row."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def score(
        self, X: Features, y: Labels, name: str = "accuracy", k: int = 1, right: Mask | None = None
    ) -> Score:
        """Share of rows whose label is among the k most probable classes.

        right  classes of the test set × trained classes: which answers count as right for a label (a class map)
        """
        hits = top_hits(self.predict_proba(X), y if right is not None else self.columns_of(y), k, right)
        return proportion(name, int(hits.sum()), len(hits), self.protocol)

    def columns_of(self, y: Any) -> Labels:
        """Which column of `predict_proba` each label is; −1 for a label that was not trained."""
        y = np.asarray(y)
        if np.issubdtype(y.dtype, np.integer):
            return y.astype(np.int64)
        number = {label: i for i, label in enumerate(self.classes_.tolist())}
        return np.array([number.get(label, -1) for label in y.tolist()], np.int64)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change what the constructor was given; `fit` then learns from the start."""
        known = inspect.signature(type(self)).parameters
        for name, value in params.items():
            if name not in known:
                raise unknown(f"{type(self).__name__} has no parameter", name, known)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({words})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator; called by scikit-learn alone."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )


def top_hits(p: NDArray[np.float32], y: Labels, k: int = 1, right: Mask | None = None) -> Mask:
    """Which rows of N×C probabilities have a right class among their k best."""
    y, k = np.asarray(y, np.int64), min(k, p.shape[1])
    top = np.argpartition(-p, k - 1, axis=1)[:, :k] if k > 1 else p.argmax(1)[:, None]  # N×k
    if right is None:
        return (top == y[:, None]).any(1)
    return right[y[:, None], top].any(1)


def check_features(X: Any) -> Features:
    """N×D finite numbers."""
    X = np.ascontiguousarray(X, np.float32)
    if X.ndim != 2:
        raise UserError(f"features of shape {X.shape}: a probe takes one row of numbers for each image")
    if not np.isfinite(X).all():
        raise UserError(
            "the features hold NaN or infinity: the encoder is broken, or its input range is wrong"
        )
    return X


def check_training_set(X: Any, y: Any) -> tuple[Features, Labels, NDArray[Any]]:
    """Finite features, the column of each label, and the labels of all columns; at least two classes."""
    X, y = np.asarray(X, np.float32), np.asarray(y)
    if len(X) != len(y):
        raise UserError(f"{len(X)} rows of features but {len(y)} labels")
    X = check_features(X)
    if np.issubdtype(y.dtype, np.number) and not (y == y.astype(np.int64)).all():
        raise UserError("a probe takes classes as labels, not fractions")
    if np.issubdtype(y.dtype, np.number):
        numbers = y.astype(np.int64)
        classes: NDArray[Any] = np.arange(max(0, int(numbers.max(initial=-1))) + 1)
    else:
        classes, numbers = np.unique(y, return_inverse=True)
    if len(y) == 0 or numbers.min() < 0 or len(np.unique(numbers)) < 2:
        raise UserError("a probe needs labelled images of at least two classes: one folder per class")
    return X, numbers, classes


FEWEST = 5  # training images per class below which a linear probe says little


def too_few(labels: Labels, classes: Sequence[str]) -> str:
    """A doubt about classes of a few training images; empty without one. Deviations of so few features are mostly noise, and
    dividing by them costs a linear probe more than it costs neighbours."""
    counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    few = [name for name, n in zip(classes, counts) if 0 < n < FEWEST]
    if not few:
        return ""
    which = ", ".join(few[:4]) + (", …" if len(few) > 4 else "")
    least = int(counts[counts > 0].min())
    return (
        f"{len(few)} of {len(classes)} classes have fewer than {FEWEST} training images ({which}; the fewest: {least}), too few "
        "for a linear probe: its scores may be far below what the encoder can do; give more images, or read the k-NN scores"
    )


def held_out(
    y: Labels, rng: np.random.Generator, share: float = 0.2, groups: Labels | None = None
) -> tuple[Labels, Labels]:
    """Rows to fit on and rows to judge by: `share` of each class, at least one row and never its last one.

    With groups whole groups are drawn, whatever their classes. Classes of one row are fitted on; the second part
    is empty where there are no others.
    """
    if groups is not None:
        units = rng.permutation(np.unique(groups))
        out = np.isin(groups, units[: min(len(units) - 1, max(1, round(share * len(units))))])
    else:
        out = np.zeros(len(y), bool)
        for label in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == label))
            out[rows[: min(len(rows) - 1, max(1, round(share * len(rows))))]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)
