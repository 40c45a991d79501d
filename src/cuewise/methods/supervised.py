"""Supervised cross-entropy, the reference that knows the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch.nn.functional as F
from torch import nn

from cuewise.data import Batch
from cuewise.encoders.heads import unit
from cuewise.methods.method import Method, MethodSettings, Setup, Step, at_least
from cuewise.objectives.nce import at_least_single


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set supervised.*"""

    smoothing: Annotated[float, "of the labels"] = 0.0


class Supervised(Method):
    """A linear classifier on the pooled features; needs labelled data."""

    name = "supervised"
    summary = "cross-entropy on the folder's labels, for reference"
    citation = "the baseline of the papers"
    views = {"query": "supervised"}
    optim = {"name": "sgd", "lr": 0.1, "reference_batch": 256, "weight_decay": 1e-4}
    Settings = Settings
    needs = ("label",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.classifier = nn.Linear(self.encoder.dim, self.setup.classes)

    @classmethod
    def check(cls, setup: Setup) -> None:
        at_least("supervised.smoothing", setup.settings.smoothing, 0, 1)

    @property
    def chance_loss(self) -> float:
        return math.log(self.setup.classes)

    def forward(self, batch: Batch) -> Step:
        h = self.encoder(batch.views["query"])  # B×D
        logits = self.classifier(h)  # B×classes
        loss = F.cross_entropy(at_least_single(logits), batch.label, label_smoothing=self.settings.smoothing)
        right = (logits.argmax(1) == batch.label).float().mean()
        return Step(loss, unit(h.detach()), extra={"accuracy": right})
