"""k-nearest neighbours with weighted votes on unit-norm features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.objectives.neighbours import knn_votes, nearest
from cuewise.probes.draws import halves
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import Features, Labels, Probe, check_features, check_training_set
from cuewise.probes.task import Task, classify
from cuewise.scores import Score

MORE = 20  # 3k + 20 neighbours contain k of a random half in all but 1 in 100,000 queries
SIMILARITIES = 1 << 26  # numbers in memory at once: 256 MB


class KNNProbe(Probe):
    """Each of the k nearest training images votes with weight e^{cosine/temperature}."""

    def __init__(self, k: int = 20, temperature: float = 0.07) -> None:
        self.k, self.temperature = k, temperature

    @property
    def protocol(self) -> str:
        return f"knn{self.k}_t{self.temperature:g}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        if self.k < 1 or self.temperature <= 0:
            raise UserError(f"knn with k {self.k} and temperature {self.temperature:g}: both must be above 0")
        X, y, self.classes_ = check_training_set(X, y)
        self.bank_ = F.normalize(torch.from_numpy(X), dim=1)
        self.labels_ = torch.from_numpy(y)
        return self

    def drawn(self, X: Features) -> list[NDArray[np.float32]]:
        """Votes of the nearest images in each half, among the nearest of all: one search for all halves."""
        q = F.normalize(torch.from_numpy(check_features(X)), dim=1)
        near, index = nearest(q, self.bank_, 3 * self.k + MORE, self._chunk)  # N×m
        out = []
        for rows in halves(self.labels_.numpy(), 0):
            inside = torch.zeros(len(self.bank_), dtype=torch.bool)
            inside[torch.from_numpy(rows)] = True
            own = inside[index]
            own &= own.cumsum(1) <= self.k
            weight = ((near - near[:, :1]) / self.temperature).exp() * own
            votes = torch.zeros(len(q), len(self.classes_)).scatter_add_(1, self.labels_[index], weight)
            out.append((votes / votes.sum(1, keepdim=True).clamp_min(1e-30)).numpy())
        return out

    @property
    def _chunk(self) -> int:
        return max(1, min(1024, SIMILARITIES // len(self.bank_)))

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        q = F.normalize(torch.from_numpy(check_features(X)), dim=1)
        votes = knn_votes(
            q, self.bank_, self.labels_, len(self.classes_), k=self.k, tau=self.temperature, chunk=self._chunk
        )
        return (votes / votes.sum(1, keepdim=True)).numpy()


@dataclass(frozen=True)
class KNN(ProbeKind):
    """Votes of neighbours."""

    name = "knn"
    summary = "weighted votes of the k nearest training images"
    estimator = KNNProbe

    k: Annotated[int, "neighbours"] = 20
    temperature: Annotated[float, "of the votes"] = 0.07
    class_map: Annotated[
        str | None,
        "JSON or CSV that says which training class a class of a test set is, where the names differ",
    ] = None

    def run(self, task: Task) -> list[Score]:
        return classify(task, KNNProbe(self.k, self.temperature))
