"""How a network is fine-tuned: rates, schedule, crops; the presets of the papers."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from cuewise.errors import UserError
from cuewise.views import RECIPES, Recipe


@dataclass(frozen=True)
class Tuning:
    """SGD with momentum 0.9 on all weights, or AdamW with a decay of the rate per layer of a vision transformer.

    Several rates mean the best one on held-out images, then all images.
    """

    lr: tuple[float, ...]
    batch_size: int
    epochs: int | None  # None: as many as `iterations` take
    drops: tuple[int, ...] = ()  # epochs after which the rate is a tenth; none: cosine to 0
    weight_decay: float = 1e-4
    iterations: int | None = None
    layer_decay: float | None = None  # AdamW
    warmup: float = 0.0  # share of training
    halvings: int = 0  # times that the rate is halved, at equal distances, instead of drops and cosine
    clip: float | None = None  # largest norm of the gradient
    scale: tuple[float, float] | None = None  # area of square crops; None: as in supervised training
    fixed_norm: bool = False  # batch norm keeps the statistics of pretraining
    crops: int = 0  # random crops of a test image whose logits are averaged; 0: its centre
    frozen: bool = False  # only the new linear layer is trained

    def __str__(self) -> str:
        rates = "|".join(f"{v:g}" for v in self.lr)
        length = f"epochs{self.epochs}" if self.iterations is None else f"iterations{self.iterations}"
        parts = [f"lr{rates}_batch{self.batch_size}_{length}_{self._fall}_wd{self.weight_decay:g}"]
        parts += [f"layerdecay{self.layer_decay:g}"] if self.layer_decay else []
        parts += [f"clip{self.clip:g}"] if self.clip else []
        parts += [f"crops{self.scale[0]:g}-{self.scale[1]:g}"] if self.scale else []
        parts += ["fixednorm"] if self.fixed_norm else []
        parts += [f"test{self.crops}crops"] if self.crops else []
        return "_".join(parts)

    @property
    def _fall(self) -> str:
        if self.halvings:
            return f"halved{self.halvings}times"
        return f"x0.1at{'-'.join(map(str, self.drops))}" if self.drops else "cosine"

    def factor(self, step: int, total: int, epoch: int) -> float:
        """What the rate is multiplied by at a step of `total`, in an epoch."""
        if self.halvings:
            return float(0.5 ** (step * self.halvings // total))
        if self.drops:
            return float(0.1 ** sum(epoch >= drop for drop in self.drops))
        warmup = self.warmup * total
        if step < warmup:
            return min(1.0, (step + 1) / warmup)
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

    def recipe(self, size: int) -> Recipe:
        """How training images are cropped and flipped."""
        plain = dataclasses.replace(RECIPES["supervised"], size=size)
        return dataclasses.replace(plain, scale=self.scale, ratio=(1.0, 1.0)) if self.scale else plain


TUNINGS = {
    # Mishra et al., Table 2.2 gives no settings: the grid is chosen on held-out images
    "transfer": Tuning((0.01, 0.03, 0.1), 128, 100),
    # Geirhos et al. 2019, as Mishra et al. use it: on clean images after training on a mixture
    "clean": Tuning((0.01,), 256, 60, (30,)),
    # He et al. 2022 and CAN: 50 epochs with layer decay 0.75, 5 of them warm-up
    "vit": Tuning((1e-3,), 256, 50, weight_decay=0.05, layer_decay=0.75, warmup=0.1),
    # Mishra et al., section 2.8: lr 0.003 and 90,000 iterations; the rest is that of DeepCluster (Caron et al. 2018),
    # which halves the rate every 5,000 iterations
    "voc": Tuning((0.003,), 16, None, weight_decay=1e-6, iterations=90_000, halvings=18, clip=10.0, scale=(0.1, 0.5),
                  fixed_norm=True, crops=10),
}  # fmt: skip


def tuning(preset: str, known: tuple[str, ...], **changes: Any) -> Tuning:
    """A preset with what the user asked for instead."""
    if preset not in known:
        raise UserError(f"no preset {preset!r} of fine-tuning; there are: {', '.join(known)}")
    given = {k: v for k, v in changes.items() if v is not None}
    for name, value in given.items():
        if value <= 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0")
    if "epochs" in given:
        given["iterations"] = None
    if "lr" in given:
        given["lr"] = (given["lr"],)
    return dataclasses.replace(TUNINGS[preset], **given)
