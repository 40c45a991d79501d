"""Supervised cross-entropy, the reference that knows the labels; with a correction where labels may be wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders.batch_norm import fix_statistics
from cuewise.encoders.card import is_random
from cuewise.encoders.heads import unit
from cuewise.errors import UserError
from cuewise.methods.method import Method, MethodSettings, Setup, Step, at_least, check_statistics
from cuewise.methods.pix2pix import Pix2Pix
from cuewise.methods.suppressor import Suppressor
from cuewise.objectives.corrected import corrected_cross_entropy
from cuewise.objectives.nce import at_least_single


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set supervised.*"""

    smoothing: Annotated[float, "of the labels"] = 0.0
    statistics: Annotated[
        str,
        "of the encoder's batch norm: batch, or fixed, those of the weights that the run starts from "
        "(for small batches, and images of another size than the weights were trained on)",
    ] = "batch"
    freeze: Annotated[bool, "leave the generator of --generator unchanged"] = False
    keep: Annotated[
        float, "weight of the loss of pix2pix, which keeps the generator of --generator a suppressor"
    ] = 1.0


class Supervised(Method):
    """A linear classifier on the pooled features; needs labelled data."""

    name = "supervised"
    summary = "cross-entropy on the folder's labels, for reference"
    citation = "the baseline of the papers"
    equation = "L = −log p(label | image)"
    views = {"query": "supervised"}
    optim = {"name": "sgd", "lr": 0.1, "reference_batch": 256, "weight_decay": 1e-4}
    Settings = Settings
    needs = ("label",)
    takes_labels = True
    takes_generator = True
    confusion: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.settings.statistics == "fixed" and is_random(self.encoder.card.weights):
            raise UserError(
                "supervised.statistics=fixed is for a model that brings weights: give --model MODEL:FILE or a run"
            )
        self.classifier = nn.Linear(self.encoder.dim, self.setup.classes)
        if self.setup.correction != "none":
            self.register_buffer("confusion", torch.eye(self.setup.classes))  # C[y, ỹ], estimated beforehand
        self.suppressor: Suppressor | None = None
        if self.setup.generator is not None:
            frozen = self.settings.freeze
            self.suppressor = Suppressor(self.setup.generator, self.encoder, self.setup.size, frozen)

    @classmethod
    def check(cls, setup: Setup) -> None:
        s: Settings = setup.settings
        at_least("supervised.smoothing", s.smoothing, 0, 1)
        if s.smoothing and setup.correction != "none":
            raise UserError(
                f"supervised.smoothing has no meaning with labels.correction={setup.correction}: leave one of them out"
            )
        check_statistics("supervised", s.statistics, "batch", "fixed")
        at_least("supervised.keep", s.keep, 0)
        if setup.generator is None and (s.freeze or s.keep != Settings.keep):
            raise UserError("supervised.freeze and supervised.keep are about a generator: add --generator G")
        if s.freeze and s.keep != Settings.keep:
            raise UserError("supervised.keep has no meaning for a frozen generator: leave one of them out")
        if setup.generator is not None and setup.correction != "none":
            raise UserError("--generator and labels.correction exclude each other: give one of them")

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.settings.statistics == "fixed":
            fix_statistics(self.encoder)
        return self

    def apart(self) -> Mapping[str, tuple[nn.Module, Mapping[str, Any]]]:
        """A generator that trains along, and its discriminator, with the optimiser that they were trained with."""
        if self.suppressor is None or self.settings.freeze:
            return {}
        own = {k: v for k, v in Pix2Pix.optim.items() if k != "schedule"}
        parts = {"generator": self.suppressor.generator, "discriminator": self.suppressor.discriminator}
        return {name: (part, own) for name, part in parts.items()}

    @property
    def chance_loss(self) -> float:
        return math.log(self.setup.classes)

    def own_classifier(self) -> nn.Module:
        return self.classifier

    def take_confusion(self, confusion: Tensor) -> None:
        self.confusion.copy_(confusion)

    def forward(self, batch: Batch) -> Step:
        x, label = batch.views["query"], batch.label
        if self.setup.correction != "none":
            return self.corrected(x, label, batch.facts["trusted"])
        if self.suppressor is not None:
            return self.with_generated(x, label, self.suppressor)
        h = self.encoder(x)  # B×D
        logits = self.classifier(h)  # B×classes
        loss = F.cross_entropy(at_least_single(logits), label, label_smoothing=self.settings.smoothing)
        return Step(loss, unit(h.detach()), extra={"accuracy": right(logits, label)})

    def corrected(self, x: Tensor, given: Tensor, trusted: Tensor) -> Step:
        """Cross-entropy of trusted images, and of the others after their answer went through the confusion; the sum over
        both, divided by the batch. Hendrycks et al. 2018, Eq. 2."""
        h = self.by_side(x, trusted)
        logits = at_least_single(self.classifier(h))
        gold = F.cross_entropy(logits, given, reduction="none")
        silver = corrected_cross_entropy(logits, given, self.confusion)
        loss = torch.where(trusted, gold, silver).mean()
        return Step(loss, unit(h.detach()), extra={"accuracy": right(logits, given)})

    def with_generated(self, x: Tensor, label: Tensor, suppressor: Suppressor) -> Step:
        """CE(x) + CE(G(x)) + keep · (loss of pix2pix), images and generated ones in one forward."""
        made, losses = suppressor(x)
        h = self.encoder(torch.cat([x, made]))
        logits = at_least_single(self.classifier(h))
        smoothing = self.settings.smoothing
        on_x, on_g = (F.cross_entropy(z, label, label_smoothing=smoothing) for z in logits.chunk(2))
        loss = on_x + on_g
        if losses:
            weight = suppressor.weight
            own = losses["adversarial"] + weight * losses["l1"] + losses["discriminator"]
            loss = loss + self.settings.keep * own
        plain, generated = logits.chunk(2)
        found = {"accuracy": right(plain, label), "accuracy_generated": right(generated, label)}
        found |= {"loss_plain": on_x.detach(), "loss_generated": on_g.detach()}
        return Step(
            loss, unit(h[: len(x)].detach()), extra=found | {k: v.detach() for k, v in losses.items()}
        )

    def by_side(self, x: Tensor, trusted: Tensor) -> Tensor:
        """Features B×D; trusted images and the others pass separately, each with batch statistics of their own.

        A single image has no such statistics: then all pass together.
        """
        sides = [side.nonzero()[:, 0] for side in (trusted, ~trusted)]
        sides = [rows for rows in sides if len(rows)]
        if len(sides) == 1 or min(map(len, sides)) < 2:
            return self.encoder(x)  # type: ignore[no-any-return]
        h = torch.cat([self.encoder(x[rows]) for rows in sides])
        return h[torch.cat(sides).argsort()]


def right(logits: Tensor, label: Tensor) -> Tensor:
    """Share of answers that are the label."""
    return (logits.argmax(1) == label).float().mean()
