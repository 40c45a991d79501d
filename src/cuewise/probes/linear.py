"""Multinomial logistic regression on standardised features, solved to the optimum by L-BFGS."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.encoders import Encoder
from cuewise.errors import UserError
from cuewise.probes.draws import halves
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import (
    Features,
    Labels,
    Probe,
    check_features,
    check_training_set,
    held_out,
    too_few,
)
from cuewise.probes.sgd import Schedule, SGDProbe, schedule
from cuewise.probes.solve import SWEEP, cross_entropy, logits, solve, standardiser, sweep, sweep_name
from cuewise.probes.task import Task, classify
from cuewise.probes.tuned import tuned_scores
from cuewise.probes.tunings import Tuning
from cuewise.scores import Score

REDRAWN = 8  # iterations of a probe on part of its training set, from the solution on all of it
Training = tuple[Features, Tensor, Labels | None]  # features, targets, groups
CONV_NUMBERS = 9216  # of the map that frozen_conv is fitted on: AlexNet's conv5, 256 × 6 × 6


class LinearProbe(Probe):
    """mean cross-entropy + l2/2 · ‖W‖²; l2 is chosen on a held-out fifth of the training set, then all of it is used."""

    def __init__(self, l2: Sequence[float] = SWEEP, seed: int = 0, iterations: int = 100) -> None:
        self.l2, self.seed, self.iterations = l2, seed, iterations

    @property
    def protocol(self) -> str:
        return f"linear_lbfgs_standardised_{sweep_name(self.l2)}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        X, y, self.classes_ = check_training_set(X, y)
        # labels may have gaps; no weight is spent on them
        self.labels_, number = np.unique(y, return_inverse=True)
        self.scale_ = standardiser(X)
        x, t = self.scale_(X), torch.from_numpy(number.astype(np.int64))
        start = torch.zeros(x.shape[1] + 1, len(self.labels_))
        split = held_out(y, np.random.default_rng(self.seed), groups=groups)
        self.l2_, start = sweep(x, t, cross_entropy, self.l2, split, start, self.iterations)
        self.coef_ = solve(x, t, cross_entropy, self.l2_, start, self.iterations)  # (D+1)×C
        self.train_: Training | None = (X, t, groups)
        self.draws_: list[Tensor] = []
        return self

    def drawn(self, X: Features) -> list[NDArray[np.float32]]:
        """Fitted on halves when first asked for: the chosen l2, from the solution on all images, so that it is quick."""
        if not self.draws_ and self.train_ is not None:
            (X_train, t, groups), self.train_ = self.train_, None
            for rows in halves(t.numpy(), self.seed, groups):
                x, y, start = self.scale_(X_train[rows]), t[torch.from_numpy(rows)], self.coef_
                self.draws_.append(solve(x, y, cross_entropy, self.l2_, start, REDRAWN, tolerance=1e-4))
        return [self._proba(X, coef) for coef in self.draws_]

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        return self._proba(X, self.coef_)

    def _proba(self, X: Features, coef: Tensor) -> NDArray[np.float32]:
        out = np.zeros((len(X), len(self.classes_)), np.float32)
        out[:, self.labels_] = logits(self.scale_(check_features(X)), coef).softmax(1).numpy()
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Without the training set, which is kept only to fit the draws: a fitted probe travels to other processes."""
        return {**vars(self), "train_": None} if "train_" in vars(self) else vars(self)


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

    epochs: Annotated[int | None, "passes of a preset, its drops at the same shares [the preset's]"] = None
    augment: Annotated[
        bool, "with ns, moco or looc: new crops and flips in every epoch, encoded again, as published"
    ] = False
    steps: Annotated[int | None, "with --augment: stop after this many steps, the schedule unchanged"] = None

    def run(self, task: Task) -> list[Score]:
        if self.steps is not None and not self.augment:
            raise UserError("--steps belongs to --augment")
        if self.preset is None:
            if self.augment or self.epochs is not None:
                raise UserError("--augment and --epochs belong to a preset: add --preset ns, moco or looc")
            if few := too_few(np.asarray(task.fitted.labels), task.fitted.classes):
                print(f"WARNING: {few}", file=sys.stderr, flush=True)
            return classify(task, LinearProbe(seed=task.seed))
        chosen = schedule(self.preset).lasting(self.epochs)
        if self.augment:
            return tuned_scores(
                task, [FinetuneProbe(task.encoder, augmented(self.preset, chosen), task.seed, self.steps)]
            )
        how = {"view": "conv map", "forward": ConvMap(task.encoder)} if chosen.conv else {}
        return classify(task, SGDProbe(self.preset, task.seed, chosen), **how)


def augmented(preset: str, s: Schedule) -> Tuning:
    """A preset whose layer is trained on crops that are encoded again in every epoch."""
    if s.conv or s.lars:
        raise UserError(f"--augment goes with --preset ns, moco or looc, not {preset}")
    return Tuning(s.lr, s.batch_size, s.epochs, s.milestones, weight_decay=s.weight_decay, frozen=True)


class ConvMap:
    """The last feature map averaged onto a grid of at most 9216 numbers, flattened: B×(C·g·g)."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, x: Any) -> Any:
        m = self.encoder.feature_map(x)  # B×C×h×w
        side = max(1, min(m.shape[2], m.shape[3], int((CONV_NUMBERS / m.shape[1]) ** 0.5)))
        return F.adaptive_avg_pool2d(m, side).flatten(1)
