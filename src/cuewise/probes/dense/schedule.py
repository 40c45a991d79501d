"""How long and how fast a detector or a segmenter is trained."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuewise.errors import UserError


@dataclass(frozen=True)
class DenseSchedule:
    """SGD with momentum 0.9. `lr` is that of `reference` images per step and follows the batch size.

    warmup  share of training in which the rate rises linearly from a thousandth
    drops   shares of training after which the rate is a tenth
    poly    power by which the rate falls to `floor`; None: it stays between the drops
    clip    largest norm of the gradient; None: any
    """

    lr: float
    batch_size: int
    epochs: int | None
    steps: int | None = None
    reference: int = 16
    weight_decay: float = 1e-4
    warmup: float = 0.0
    drops: tuple[float, ...] = ()
    poly: float | None = None
    floor: float = 0.0
    clip: float | None = None

    def length(self, per_epoch: int) -> int:
        """Optimiser steps in all."""
        return self.steps if self.steps is not None else (self.epochs or 1) * per_epoch

    def rate(self, step: int, total: int, batch_size: int) -> float:
        """The learning rate of one step."""
        peak = self.lr * batch_size / self.reference
        rising = self.warmup * total
        if step < rising:
            share = (step + 1) / math.ceil(rising)
            return peak * (0.001 + 0.999 * min(1.0, share))
        if self.poly is not None:
            return max(self.floor, peak * (1 - step / total) ** self.poly)
        return peak * 0.1 ** sum(step >= drop * total for drop in self.drops)

    def __str__(self) -> str:
        length = f"steps{self.steps}" if self.steps is not None else f"epochs{self.epochs}"
        drops = "-".join(f"{d:.2f}" for d in self.drops)
        fall = f"poly{self.poly:g}" if self.poly is not None else f"x0.1at{drops}"
        return f"sgd_lr{self.lr:g}per{self.reference}_batch{self.batch_size}_{length}_{fall}_wd{self.weight_decay:g}"


def changed(known: Mapping[str, DenseSchedule], preset: str, **given: Any) -> DenseSchedule:
    """A preset with what the user asked for instead; `lr` is then that of the batch as it is."""
    if preset not in known:
        raise UserError(f"no preset {preset!r} here; there are: {', '.join(known)}")
    if given.get("epochs") is not None and given.get("steps") is not None:
        raise UserError("--epochs and --steps both say how long to train: give one of them")
    asked = {k: v for k, v in given.items() if v is not None}
    for name, value in asked.items():
        if value <= 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0")
    if "epochs" in asked:
        asked["steps"] = None
    if "steps" in asked and asked["steps"] is not None:
        asked["epochs"] = None
    found = dataclasses.replace(known[preset], **asked)
    return dataclasses.replace(found, reference=found.batch_size) if "lr" in asked else found
