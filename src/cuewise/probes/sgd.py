"""The papers' linear probes: one linear layer trained by SGD, here on features that were extracted once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.errors import UserError
from cuewise.probes.probe import Features, Labels, Probe, check_features, check_training_set, held_out
from cuewise.probes.solve import logits, scaled, standardiser
from cuewise.train.optim import LARS

Loss = Callable[[Tensor, Tensor], Tensor]  # logits and targets → mean loss


@dataclass(frozen=True)
class Schedule:
    """SGD on one linear layer: W ~ N(0, 0.01²), b = 0; several rates mean the best one on a held-out fifth."""

    lr: tuple[float, ...]
    batch_size: int
    epochs: int
    milestones: tuple[int, ...]  # epochs after which the rate is a tenth; none: cosine to 0
    momentum: float = 0.9
    weight_decay: float = 0.0
    standardise: bool = False
    lars: bool = False
    conv: bool = False  # on the last feature map instead of its mean

    def __str__(self) -> str:
        rates, drops = "|".join(f"{v:g}" for v in self.lr), "-".join(map(str, self.milestones))
        scaled = "_standardised" if self.standardise else ""
        fall = f"x0.1at{drops}" if drops else "cosine"
        kind = "_lars" if self.lars else ""
        return f"lr{rates}_batch{self.batch_size}_epochs{self.epochs}_{fall}_m{self.momentum:g}{scaled}{kind}"

    def lasting(self, epochs: int | None) -> Schedule:
        """The same schedule in another number of epochs: its drops come at the same shares."""
        if epochs is None:
            return self
        if epochs < 1:
            raise UserError(f"--epochs {epochs}: must be 1 or more")
        drops = tuple(round(m * epochs / self.epochs) for m in self.milestones)
        return replace(self, epochs=epochs, milestones=drops)

    def factor(self, epoch: int) -> float:
        """What the rate is multiplied by in an epoch."""
        if not self.milestones:
            return 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))
        return float(0.1 ** sum(epoch >= m for m in self.milestones))


PRESETS = {
    # Ge et al. 2021, appendix C.1
    "ns": Schedule((10.0,), 128, 60, (30, 40, 50)),
    # He et al. 2020
    "moco": Schedule((30.0,), 256, 100, (60, 80)),
    # Xiao et al. 2021, appendix D: drops at 60 % and 80 % of 200 epochs
    "looc": Schedule((30.0,), 256, 200, (120, 160)),
    # CAN and He et al. 2022 (MAE): LARS, a base rate of 0.1 for 256 images at batch 16,384, features standardised
    "can": Schedule((6.4,), 16384, 90, (), standardise=True, lars=True),
    # Mishra et al., section 2.5.2: the paper fixes the layer and says that the rest was chosen on validation images
    "frozen_conv": Schedule((0.01, 0.1, 1.0), 256, 100, (60, 80), standardise=True, conv=True),
}


def schedule(preset: str) -> Schedule:
    """A preset by name."""
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r} of a linear probe; there are: {', '.join(PRESETS)}")
    return PRESETS[preset]


class SGDProbe(Probe):
    """A linear layer trained with a published schedule (presets ns, moco, looc, can, frozen_conv) on fixed features."""

    def __init__(self, preset: str = "ns", seed: int = 0, schedule: Schedule | None = None) -> None:
        self.preset, self.seed, self.schedule = preset, seed, schedule

    @property
    def settings(self) -> Schedule:
        return self.schedule or schedule(self.preset)

    @property
    def protocol(self) -> str:
        return f"linear_sgd_{self.preset}_{self.settings}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        s = self.settings
        X, y, self.classes_ = check_training_set(X, y)
        self.labels_, number = np.unique(y, return_inverse=True)
        self.scale_ = standardiser(X) if s.standardise else None
        x, t = scaled(X, self.scale_), torch.from_numpy(number.astype(np.int64))
        split = held_out(y, np.random.default_rng(self.seed), groups=groups)
        self.lr_ = best_rate(x, t, F.cross_entropy, len(self.labels_), s, split, self.seed)
        self.coef_ = descend(x, t, F.cross_entropy, len(self.labels_), s, self.lr_, self.seed)  # (D+1)×C
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        out = np.zeros((len(X), len(self.classes_)), np.float32)
        out[:, self.labels_] = logits(scaled(check_features(X), self.scale_), self.coef_).softmax(1).numpy()
        return out


def best_rate(
    x: Tensor,
    y: Tensor,
    loss: Loss,
    outputs: int,
    s: Schedule,
    split: tuple[NDArray[np.int64], NDArray[np.int64]],
    seed: int,
) -> float:
    """The rate with the least loss on held-out rows; the only one, or the middle one where nothing can be held out."""
    rest, held = (torch.from_numpy(part) for part in split)
    if len(s.lr) == 1 or len(held) == 0:
        return s.lr[len(s.lr) // 2]
    found = {lr: descend(x[rest], y[rest], loss, outputs, s, lr, seed) for lr in s.lr}
    return min(
        found, key=lambda lr: float(loss(logits(x[held], found[lr]), y[held]).nan_to_num(float("inf")))
    )


def descend(x: Tensor, y: Tensor, loss: Loss, outputs: int, s: Schedule, lr: float, seed: int) -> Tensor:
    """The layer after all epochs, (D+1)×outputs."""
    generator = torch.Generator().manual_seed(seed)
    w = torch.zeros(x.shape[1] + 1, outputs)
    w[:-1].normal_(0, 0.01, generator=generator)
    w.requires_grad_(True)
    kind = LARS if s.lars else torch.optim.SGD
    solver = kind([w], lr=lr, momentum=s.momentum, weight_decay=s.weight_decay)
    with torch.inference_mode(False), torch.enable_grad():
        for epoch in range(s.epochs):
            for group in solver.param_groups:
                group["lr"] = lr * s.factor(epoch)
            for rows in torch.randperm(len(x), generator=generator).split(s.batch_size):
                solver.zero_grad(set_to_none=True)
                loss(logits(x[rows], w), y[rows]).backward()  # type: ignore[no-untyped-call]
                solver.step()
    if not torch.isfinite(w).all():
        raise UserError(
            f"SGD with lr {lr:g} diverges on these features: use the exact probe (leave --preset out)"
        )
    return w.detach()
