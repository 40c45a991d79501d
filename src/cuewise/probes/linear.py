"""Multinomial logistic regression on standardised features, solved to the optimum by L-BFGS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.probes.probe import Features, Labels, Probe, check_training_set


class LinearProbe(Probe):
    """mean cross-entropy + l2/2 · ‖W‖²; l2 is chosen on a held-out fifth of the training set, then all of it is used."""

    def __init__(
        self, l2: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0), seed: int = 0, iterations: int = 100
    ) -> None:
        self.l2, self.seed, self.iterations = tuple(l2), seed, iterations

    @property
    def protocol(self) -> str:
        return "linear_lbfgs_standardised"

    def fit(self, X: Features, y: Labels) -> Self:
        X, y = check_training_set(X, y)
        self.mean_, self.std_ = X.mean(0), X.std(0) + 1e-6
        x, t = self._standardise(X), torch.from_numpy(y)
        self.classes_ = int(y.max()) + 1
        self.l2_ = self._choose(x, t) if len(self.l2) > 1 else self.l2[0]
        self.coef_ = self._solve(x, t, self.l2_, None)  # (D+1)×C, the last row is the bias
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        return _logits(self._standardise(X), self.coef_).softmax(1).numpy()

    def _standardise(self, X: Features) -> Tensor:
        return torch.from_numpy((np.asarray(X, np.float32) - self.mean_) / self.std_)

    def _choose(self, x: Tensor, y: Tensor) -> float:
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(self.seed))
        held, rest = order[: max(1, len(x) // 5)], order[max(1, len(x) // 5) :]
        best, best_loss, coef = self.l2[-1], float("inf"), None
        for l2 in sorted(self.l2, reverse=True):  # from stiff to loose, each from the last solution
            coef = self._solve(x[rest], y[rest], l2, coef)
            loss = float(F.cross_entropy(_logits(x[held], coef), y[held]))
            if loss < best_loss:
                best, best_loss = l2, loss
        return best

    def _solve(self, x: Tensor, y: Tensor, l2: float, start: Tensor | None) -> Tensor:
        w = torch.zeros(x.shape[1] + 1, self.classes_) if start is None else start.clone()
        w.requires_grad_(True)
        solver = torch.optim.LBFGS(
            [w], max_iter=self.iterations, tolerance_grad=1e-5, history_size=10, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            solver.zero_grad()
            value = F.cross_entropy(_logits(x, w), y) + l2 / 2 * w[:-1].square().sum()
            value.backward()
            return value

        with torch.enable_grad():
            solver.step(loss)  # type: ignore[arg-type]
        return w.detach()


def _logits(x: Tensor, w: Tensor) -> Tensor:
    return torch.addmm(w[-1], x, w[:-1])
