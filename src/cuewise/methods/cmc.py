"""CMC, contrastive multiview coding: the lightness of an image finds its colours, and the other way round."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import nn

from cuewise.data import Batch
from cuewise.encoders import Encoder
from cuewise.encoders.heads import unit
from cuewise.encoders.lab import LabPair
from cuewise.errors import UserError
from cuewise.methods.bank import STEPS, Bank, BankSettings, check_bank
from cuewise.methods.method import Method, Setup, Step


@dataclass(frozen=True)
class Settings(BankSettings):
    """--set cmc.*"""

    most: Annotated[int, "largest `noise` where it is not given"] = 16384


class CMC(Method):
    """Two encoders, of L and of ab; each one's embedding is classified as its image's entry in the other one's bank.

    `encoder` becomes the pair: a model of RGB images whose features are both encoders' side by side.
    """

    name = "cmc"
    summary = "lightness against colours, two encoders and two memory banks (CMC)"
    citation = "Tian et al. 2020"
    equation = (
        "L = L_nce(f_L among the entries of ab) + L_nce(f_ab among the entries of L), each as in insdis"
    )
    views = {"query": "cmc"}
    optim = {**STEPS, "milestones": [0.5, 2 / 3, 5 / 6]}  # 120, 160 and 200 of 240 epochs
    Settings = Settings

    def __init__(self, encoder: Encoder, *args: Any, **kwargs: Any) -> None:
        dim = encoder.dim // 2 if isinstance(encoder.backbone, LabPair) else encoder.dim
        super().__init__(pair_of(encoder, kwargs.get("seed", 0)), *args, **kwargs)
        self.project_L = nn.Linear(dim, self.settings.dim)
        self.project_ab = nn.Linear(dim, self.settings.dim)
        self.bank_L = Bank(self.settings, self.generator)
        self.bank_ab = Bank(self.settings, self.generator)

    @classmethod
    def check(cls, setup: Setup) -> None:
        check_bank(cls.name, setup)

    @property
    def chance_loss(self) -> float | None:
        return 2 * math.log((self.settings.noise or 0) + 1) if self.settings.loss == "softmax" else None

    def forward(self, batch: Batch) -> Step:
        index = batch.index  # B
        h_L, h_ab = self.encoder.backbone.both(batch.views["query"])  # type: ignore[operator]
        L, ab = unit(self.project_L(h_L)), unit(self.project_ab(h_ab))  # B×C each
        others = self.bank_L.others(index, self.comm, self.generator)  # B×m
        with torch.autocast(L.device.type, enabled=False):
            loss = self.bank_ab.loss(L, index, others, self.comm) + self.bank_L.loss(
                ab, index, others, self.comm
            )
        self.bank_L.hold(L.detach(), index)
        self.bank_ab.hold(ab.detach(), index)
        return Step(loss, L.detach(), ab.detach())


def pair_of(encoder: Encoder, seed: int) -> Encoder:
    """Two networks of the encoder's architecture behind one face; the second starts with other numbers, spread alike."""
    card = encoder.card
    if isinstance(encoder.backbone, LabPair):  # --model cuewise/lab?of=…&space=…
        return encoder
    if not card.arch.startswith(("torchvision/", "timm/", "cuewise/")):
        raise UserError(f"cmc takes models by name (torchvision/…, timm/…, cuewise/…), not {card.arch}")
    other, g = copy.deepcopy(encoder.backbone), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in other.parameters():
            if p.ndim > 1:
                p.copy_(torch.randn(p.shape, generator=g) * p.std())
    pair = LabPair(encoder.backbone, other, card.mean, card.std)
    return Encoder(pair, replace(card, arch=f"cuewise/lab?of={card.arch.replace('?', '&')}"))
