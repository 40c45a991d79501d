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
from cuewise.errors import UserError
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import Features, Labels, Probe, check_features, check_training_set, held_out
from cuewise.probes.sgd import Schedule, SGDProbe, schedule
from cuewise.probes.solve import SWEEP, logits, solve, standardiser, sweep
from cuewise.probes.task import Task, classify
from cuewise.probes.tuned import tuned_scores
from cuewise.probes.tunings import Tuning
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
