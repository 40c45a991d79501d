"""k-nearest neighbours with weighted votes on unit-norm features."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.objectives.neighbours import knn_votes
from cuewise.probes.probe import Features, Labels, Probe, check_training_set


class KNNProbe(Probe):
    """Each of the k nearest training images votes with weight e^{cosine/temperature}."""

    def __init__(self, k: int = 20, temperature: float = 0.07) -> None:
        self.k, self.temperature = k, temperature

    @property
    def protocol(self) -> str:
        return f"knn{self.k}_t{self.temperature:g}"

    def fit(self, X: Features, y: Labels) -> Self:
        X, y = check_training_set(X, y)
        self.bank_ = F.normalize(torch.from_numpy(X), dim=1)
        self.labels_ = torch.from_numpy(y)
        self.classes_ = int(y.max()) + 1
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        q = F.normalize(torch.from_numpy(np.asarray(X, np.float32)), dim=1)
        votes = knn_votes(q, self.bank_, self.labels_, self.classes_, k=self.k, tau=self.temperature)
        return (votes / votes.sum(1, keepdim=True)).numpy()
