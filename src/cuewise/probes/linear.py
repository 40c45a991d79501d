"""Multinomial logistic regression on standardised features, solved to the optimum by L-BFGS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.encoders import Encoder
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import Features, Labels, Probe, check_features, check_training_set, held_out
from cuewise.probes.sgd import SGDProbe, schedule
from cuewise.probes.solve import SWEEP, logits, solve, standardiser, sweep
from cuewise.probes.task import Task, classify
from cuewise.scores import Score

CONV_NUMBERS = 9216  # of the map that frozen_conv is fitted on: AlexNet's conv5, 256 × 6 × 6


class LinearProbe(Probe):
    """mean cross-entropy + l2/2 · ‖W‖²; l2 is chosen on a held-out fifth of the training set, then all of it is used."""

    def __init__(self, l2: Sequence[float] = SWEEP, seed: int = 0, iterations: int = 100) -> None:
        self.l2, self.seed, self.iterations = l2, seed, iterations

    @property
    def protocol(self) -> str:
        chosen = f"l2_of_{len(self.l2)}_held_out" if len(self.l2) > 1 else f"l2_{self.l2[0]:g}"
        return f"linear_lbfgs_standardised_{chosen}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        X, y, self.classes_ = check_training_set(X, y)
        self.labels_, number = np.unique(
            y, return_inverse=True
        )  # labels may have gaps; no weight is spent on them
        self.scale_ = standardiser(X)
        x, t = self.scale_(X), torch.from_numpy(number.astype(np.int64))
        start = torch.zeros(x.shape[1] + 1, len(self.labels_))
        split = held_out(y, np.random.default_rng(self.seed), groups=groups)
        self.l2_, start = sweep(x, t, F.cross_entropy, self.l2, split, start, self.iterations)
        self.coef_ = solve(x, t, F.cross_entropy, self.l2_, start, self.iterations)  # (D+1)×C
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        out = np.zeros((len(X), len(self.classes_)), np.float32)
        out[:, self.labels_] = logits(self.scale_(check_features(X)), self.coef_).softmax(1).numpy()
        return out


@dataclass(frozen=True)
class Linear(ProbeKind):
    """The exact probe, or a paper's schedule on the same features."""

    name = "linear"
    summary = "logistic regression on frozen features, exact (or --preset ns, moco, looc, can, frozen_conv)"
    estimator = LinearProbe

    preset: Annotated[
        str | None, "a paper's settings: ns, moco, looc, can, frozen_conv [the exact probe]"
    ] = None
    class_map: Annotated[
        str | None,
        "JSON or CSV that says which training class a class of a test set is, where the names differ",
    ] = None

    def run(self, task: Task) -> list[Score]:
        if self.preset is None:
            return classify(task, LinearProbe(seed=task.seed))
        how = {"view": "conv map", "forward": ConvMap(task.encoder)} if schedule(self.preset).conv else {}
        return classify(task, SGDProbe(self.preset, task.seed), **how)


class ConvMap:
    """The last feature map averaged onto a grid of at most 9216 numbers, flattened: B×(C·g·g)."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, x: Any) -> Any:
        m = self.encoder.feature_map(x)  # B×C×h×w
        side = max(1, min(m.shape[2], m.shape[3], int((CONV_NUMBERS / m.shape[1]) ** 0.5)))
        return F.adaptive_avg_pool2d(m, side).flatten(1)
