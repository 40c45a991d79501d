"""What a probe is: inert constructor, fit, predict, score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.scores import Score, proportion

Features = NDArray[np.float32]
Labels = NDArray[np.int64]


class Probe(ABC):
    """A classifier on features; what `fit` learns ends in an underscore."""

    @property
    @abstractmethod
    def protocol(self) -> str:
        """Name of the protocol with its settings; it stands on every score."""

    @abstractmethod
    def fit(self, X: Features, y: Labels) -> Self:
        """Learn from N×D features and N labels."""

    @abstractmethod
    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        """N×C probabilities of the classes 0 … C−1."""

    def predict(self, X: Features) -> Labels:
        return self.predict_proba(X).argmax(1)

    def score(self, X: Features, y: Labels, name: str = "accuracy", k: int = 1) -> Score:
        """Share of rows whose label is among the k most probable classes."""
        p = self.predict_proba(X)
        k = min(k, p.shape[1])
        top = np.argpartition(-p, k - 1, axis=1)[:, :k] if k > 1 else p.argmax(1)[:, None]
        hits = int((top == np.asarray(y)[:, None]).any(1).sum())
        return proportion(name, hits, len(y), self.protocol)


def check_training_set(X: Any, y: Any) -> tuple[Features, Labels]:
    """Finite features, one label each, at least two classes."""
    X, y = np.asarray(X, np.float32), np.asarray(y, np.int64)
    if len(X) != len(y):
        raise UserError(f"{len(X)} rows of features but {len(y)} labels")
    if not np.isfinite(X).all():
        raise UserError(
            "the features hold NaN or infinity: the encoder is broken, or its input range is wrong"
        )
    if len(y) == 0 or y.min() < 0 or len(np.unique(y)) < 2:
        raise UserError("a probe needs labelled images of at least two classes: one folder a class")
    return X, y
