"""Few-shot: a linear layer from n images per class, drawn again in every trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.errors import UserError
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import (
    Features,
    Labels,
    Mask,
    Probe,
    check_features,
    check_training_set,
    top_hits,
)
from cuewise.probes.solve import logits
from cuewise.probes.task import Task, classify
from cuewise.scores import Z95, Score


class FewShotProbe(Probe):
    """All classes, n images each, 10 trials: Adam with lr 0.03, 250 iterations on the full batch (Xiao et al. 2021)."""

    def __init__(
        self, shots: int = 5, trials: int = 10, lr: float = 0.03, iterations: int = 250, seed: int = 0
    ) -> None:
        self.shots, self.trials, self.lr, self.iterations, self.seed = shots, trials, lr, iterations, seed

    @property
    def protocol(self) -> str:
        return f"fewshot{self.shots}_trials{self.trials}_adam_lr{self.lr:g}_{self.iterations}iterations"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        if self.shots < 1 or self.trials < 1:
            raise UserError(f"{self.shots} shots and {self.trials} trials: both must be 1 or more")
        X, y, self.classes_ = check_training_set(X, y)
        self.labels_, number, counts = np.unique(y, return_inverse=True, return_counts=True)
        if counts.min() < self.shots:
            label = self.classes_[self.labels_[counts.argmin()]]
            raise UserError(
                f"class {label} has {counts.min()} images, fewer than --shots {self.shots}: give fewer shots"
            )
        self.coefs_ = []  # (D+1)×C each
        for trial in range(self.trials):
            rng = np.random.default_rng([self.seed, trial])
            rows = np.concatenate(
                [rng.permutation(np.flatnonzero(number == c))[: self.shots] for c in range(len(counts))]
            )
            x, t = torch.from_numpy(X[rows]), torch.from_numpy(number[rows].astype(np.int64))
            self.coefs_.append(self._train(x, t, len(counts), trial))
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        """The mean over trials."""
        return np.mean(self._each(X), axis=0, dtype=np.float32)

    def score(
        self, X: Features, y: Labels, name: str = "accuracy", k: int = 1, right: Mask | None = None
    ) -> Score:
        """The mean of the trials' accuracies ± 1.96 · std / √trials; n counts the trials."""
        y = y if right is not None else self.columns_of(y)
        found = np.array([top_hits(p, y, k, right).mean() for p in self._each(X)])
        m = float(found.mean())
        spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
        half = (
            Z95 * spread / math.sqrt(len(found)) if spread > 0 else math.nan
        )  # equal trials say nothing of it
        return Score(name, m, m - half, m + half, len(found), self.protocol)

    def _each(self, X: Features) -> list[NDArray[np.float32]]:
        x, out = torch.from_numpy(check_features(X)), []
        for coef in self.coefs_:
            p = np.zeros((len(x), len(self.classes_)), np.float32)
            p[:, self.labels_] = logits(x, coef).softmax(1).numpy()
            out.append(p)
        return out

    def _train(self, x: Tensor, y: Tensor, classes: int, trial: int) -> Tensor:
        w = torch.zeros(x.shape[1] + 1, classes)
        w[:-1].normal_(0, 0.01, generator=torch.Generator().manual_seed(self.seed * 1000 + trial))
        w.requires_grad_(True)
        solver = torch.optim.Adam([w], lr=self.lr)
        with torch.inference_mode(False), torch.enable_grad():
            for _ in range(self.iterations):
                solver.zero_grad(set_to_none=True)
                F.cross_entropy(logits(x, w), y).backward()  # type: ignore[no-untyped-call]
                solver.step()
        return w.detach()


@dataclass(frozen=True)
class FewShot(ProbeKind):
    """Each number of shots by itself."""

    name = "fewshot"
    summary = "a linear layer from n images of every class, mean of 10 trials"
    estimator = FewShotProbe

    shots: Annotated[Sequence[int], "images per class, one number or several [5]"] = (5,)
    trials: Annotated[int, "draws of images"] = 10
    class_map: Annotated[
        str | None,
        "JSON or CSV that says which training class a class of a test set is, where the names differ",
    ] = None

    def run(self, task: Task) -> list[Score]:
        scores = []
        labels = task.fitted.labels
        assert labels is not None
        for shots in self.shots:
            counts = np.bincount(labels, minlength=len(task.fitted.classes))
            least = int(np.where(counts > 0, counts, counts.max()).argmin())
            if counts[least] < shots:
                raise UserError(
                    f"class {task.fitted.classes[least]!r} has {counts[least]} images, fewer than --shots {shots}"
                )
            task.tests.clear()
            found = classify(task, FewShotProbe(shots, self.trials, seed=task.seed))
            scores += [replace(s, name=f"{shots}-shot/{s.name}") for s in found]
        return scores
