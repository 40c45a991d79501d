"""InsDis, instance discrimination: every image is a class of its own, told from others by a memory bank."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from cuewise.encoders.heads import unit
from cuewise.methods.bank import Bank, BankSettings
from cuewise.methods.method import Method, Step


class InsDis(Method):
    """An embedding f is told to be its image's entry v_i in the bank, and not one of m others."""

    name = "insdis"
    summary = "each image its own class, against a memory bank (instance discrimination)"
    citation = "Wu et al. 2018"
    views = {"query": "insdis"}
    optim = {
        "name": "sgd",
        "lr": 0.03,
        "reference_batch": 256,
        "weight_decay": 1e-4,
        "schedule": "step",
        "milestones": [0.6, 0.8],
    }
    Settings = BankSettings
    needs_index = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.settings: BankSettings = self.settings.fitted(1 << 12, 1)
        self.projector = nn.Linear(self.encoder.dim, self.settings.dim)
        self.bank = Bank(self.settings, self.generator)
        self.pending: tuple[Tensor, Tensor] | None = None

    @property
    def chance_loss(self) -> float | None:
        return math.log((self.settings.noise or 0) + 1) if self.settings.loss == "softmax" else None

    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        index = views["index"].long()  # B
        f = unit(self.projector(self.encoder(views["query"])))  # B×C
        own = self.bank.memory[index]
        loss = self.bank.loss(f, index, self.bank.others(index, self.comm, self.generator), self.comm)
        self.pending = f.detach(), index  # the bank still holds what the loss was told from
        return Step(loss, f.detach(), unit(own))

    def after_backward(self) -> None:
        if self.pending is not None:
            self.bank.update(*self.pending, self.comm)
        self.pending = None
