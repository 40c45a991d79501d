"""InsDis, instance discrimination: every image is a class of its own, held in a memory bank."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from cuewise.data import Batch
from cuewise.encoders.heads import unit
from cuewise.methods.bank import STEPS, Bank, BankSettings, check_bank
from cuewise.methods.method import Method, Setup, Step


class InsDis(Method):
    """An embedding f is classified as its own bank entry v_i against m noise entries."""

    name = "insdis"
    summary = "each image its own class, against a memory bank (instance discrimination)"
    citation = "Wu et al. 2018"
    equation = (
        "P(i|f) = e^{v_i·f/τ} / Z,   h = P / (P + m/n),   L = −log h(own entry) − Σ_noise log(1 − h)\n"
        "v: n entries of the memory bank, m noise entries, Z fixed by the first batch; v ← normalise(μ v + (1−μ) f)"
    )
    views = {"query": "insdis"}
    optim = {**STEPS, "milestones": [0.6, 0.8]}
    Settings = BankSettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.projector = nn.Linear(self.encoder.dim, self.settings.dim)
        self.bank = Bank(self.settings, self.generator)

    @classmethod
    def check(cls, setup: Setup) -> None:
        check_bank(cls.name, setup)

    @property
    def chance_loss(self) -> float | None:
        return math.log((self.settings.noise or 0) + 1) if self.settings.loss == "softmax" else None

    def forward(self, batch: Batch) -> Step:
        index = batch.index  # B
        f = unit(self.projector(self.encoder(batch.views["query"])))  # B×C
        own = self.bank.memory[index]
        with torch.autocast(f.device.type, enabled=False):
            loss = self.bank.loss(f, index, self.bank.others(index, self.comm, self.generator), self.comm)
        self.bank.hold(f.detach(), index)
        return Step(loss, f.detach(), unit(own))
