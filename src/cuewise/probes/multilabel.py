"""Several labels per image: one sigmoid per label on frozen features, scored by mean average precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.errors import UserError
from cuewise.probes.average_precision import Targets, mean_average_precision
from cuewise.probes.probe import Features, Labels, Probe, check_features
from cuewise.probes.sgd import Schedule, descend
from cuewise.probes.solve import SWEEP, logits, scaled, solve, standardiser, sweep, sweep_name
from cuewise.scores import Score

# Mishra et al., object-aware cropping: lr 30, batch 256, 100 epochs; the drops are those of MoCo's probe
OAC = Schedule((30.0,), 256, 100, (60, 80))


class MultiLabelProbe(Probe):
    """Binary cross-entropy per label + l2/2 · ‖W‖², solved exactly; l2 is chosen on held-out images. y is N×C of 1, 0, −1."""

    def __init__(
        self,
        l2: Sequence[float] = SWEEP,
        seed: int = 0,
        iterations: int = 100,
        schedule: Schedule | None = None,
    ) -> None:
        self.l2, self.seed, self.iterations, self.schedule = l2, seed, iterations, schedule

    @property
    def protocol(self) -> str:
        if self.schedule is not None:
            return f"multilabel_bce_sgd_{self.schedule}"
        return f"multilabel_bce_lbfgs_standardised_{sweep_name(self.l2)}"

    def fit(self, X: Features, y: Labels | Targets, groups: Labels | None = None) -> Self:
        X, t = check_features(X), check_targets(y, len(X))
        self.classes_ = np.arange(t.shape[1])
        self.scale_ = standardiser(X) if self.schedule is None else None
        x = scaled(X, self.scale_)
        if self.schedule is not None:
            self.coef_ = descend(
                x, t, known_bce, len(self.classes_), self.schedule, self.schedule.lr[0], self.seed
            )
            return self
        order = np.random.default_rng(self.seed).permutation(len(X))
        held = len(X) // 5
        start = torch.zeros(x.shape[1] + 1, len(self.classes_))
        split = (order[held:], order[:held])
        self.l2_, start = sweep(x, t, summed_bce, self.l2, split, start, self.iterations)
        self.coef_ = solve(x, t, summed_bce, self.l2_, start, self.iterations)  # (D+1)×C
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        """N×C: the probability of each label by itself."""
        return logits(scaled(check_features(X), self.scale_), self.coef_).sigmoid().numpy()

    def predict(self, X: Features) -> Labels:
        return (self.predict_proba(X) >= 0.5).astype(np.int64)

    def score(self, X: Features, y: Any, name: str = "map", k: int = 1, right: Any = None) -> Score:
        """mAP (area); `mean_average_precision` has the variants."""
        return mean_average_precision(self.predict_proba(X), np.asarray(y), name, f"{self.protocol}_area")


def known_bce(z: Tensor, y: Tensor) -> Tensor:
    """Mean binary cross-entropy over the labels that count; z and y are N×C, y is 1, 0 or −1 (left out)."""
    known = (y >= 0).float()
    each = F.binary_cross_entropy_with_logits(z, y.clamp(min=0).float(), reduction="none") * known
    return each.sum() / known.sum().clamp(min=1)


def batch_bce(z: Tensor, y: Tensor) -> Tensor:
    """Summed over images and the labels that count, over the number of images: labels that are left out lower it."""
    each = F.binary_cross_entropy_with_logits(z, y.clamp(min=0).float(), reduction="none")
    return (each * (y >= 0)).sum() / len(z)


def summed_bce(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`known_bce` summed over labels, so that l2 weighs against each label alone, however many there are; and its slope."""
    known = (y >= 0).float()
    factor = z.shape[1] / known.sum().clamp(min=1)
    return known_bce(z, y) * z.shape[1], (z.sigmoid() - y.clamp(min=0)) * known * factor


def check_targets(y: Any, rows: int) -> Tensor:
    """N×C of 1, 0 and −1 with at least one positive."""
    y = np.asarray(y)
    if y.ndim != 2 or len(y) != rows:
        raise UserError(f"labels of shape {y.shape} for {rows} images: give one row of 0 and 1 for each")
    if not np.isin(y, (-1, 0, 1)).all() or not (y == 1).any():
        raise UserError(
            "labels must be 1 (present), 0 (absent) or −1 (not counted), and some must be present"
        )
    return torch.from_numpy(y.astype(np.int8))
