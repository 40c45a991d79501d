"""Multinomial logistic regression on standardised features, solved to the optimum by L-BFGS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.probes.probe import Features, Labels, Probe, check_features, check_training_set, held_out
from cuewise.probes.solve import SWEEP, logits, solve, standardiser, sweep


class LinearProbe(Probe):
    """mean cross-entropy + l2/2 · ‖W‖²; l2 is chosen on a held-out fifth of the training set, then all of it is used."""

    def __init__(self, l2: Sequence[float] = SWEEP, seed: int = 0, iterations: int = 100) -> None:
        self.l2, self.seed, self.iterations = tuple(l2), seed, iterations

    @property
    def protocol(self) -> str:
        chosen = f"l2_of_{len(self.l2)}_held_out" if len(self.l2) > 1 else f"l2_{self.l2[0]:g}"
        return f"linear_lbfgs_standardised_{chosen}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        X, y = check_training_set(X, y)
        self.labels_, number = np.unique(
            y, return_inverse=True
        )  # labels may have gaps; no weight is spent on them
        self.classes_ = int(y.max()) + 1
        self.scale_ = standardiser(X)
        x, t = self.scale_(X), torch.from_numpy(number.astype(np.int64))
        start = torch.zeros(x.shape[1] + 1, len(self.labels_))
        split = held_out(y, np.random.default_rng(self.seed), groups=groups)
        self.l2_, start = sweep(x, t, F.cross_entropy, self.l2, split, start, self.iterations)
        self.coef_ = solve(x, t, F.cross_entropy, self.l2_, start, self.iterations)  # (D+1)×C
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        out = np.zeros((len(X), self.classes_), np.float32)
        out[:, self.labels_] = logits(self.scale_(check_features(X)), self.coef_).softmax(1).numpy()
        return out
