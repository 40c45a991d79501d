"""BYOL, with repulsion from non-semantic or regular negatives."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.encoders.momentum import follow, momentum_copy
from cuewise.methods.method import (
    Method,
    MethodSettings,
    Setup,
    Step,
    at_least,
    by_query,
    check_statistics,
    embed_batches,
)
from cuewise.objectives.byol import byol


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set byol.*"""

    momentum: Annotated[float, "of the target network at the start; it rises to 1"] = 0.99
    hidden: Annotated[int, "width of the hidden layers of projector and predictor"] = 4096
    dim: Annotated[int, "of the embedding"] = 256
    statistics: Annotated[
        str,
        "batch statistics of the negatives: separate, or shared with their view in one batch of the target",
    ] = "separate"


class BYOL(Method):
    """The online network predicts the target network's view of the other crop; negatives are pushed away by α."""

    name = "byol"
    summary = "prediction of a momentum target (BYOL), with repulsion from negatives"
    citation = "Grill et al. 2020; negatives: Ge et al. 2021"
    equation = (
        "L = ‖p − z‖² − Σ_n α ‖p − n‖², in both orders of the views\n"
        "p: prediction of the online network, z: the target's embedding of the other view, n: of a negative; unit length"
    )
    views = {"first": "byol-1", "second": "byol-2"}
    negatives_from = ("first", "second")
    batch_negatives = ("regular",)
    alpha = 0.05
    alpha_modes = ("out",)  # Eq. 2 has no exponential: the weight stands before each term
    optim = {"name": "lars", "lr": 4.8, "reference_batch": 4096, "weight_decay": 1e-6, "warmup_epochs": 10}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.projector = mlp([self.encoder.dim, s.hidden, s.dim], norm=True)
        self.predictor = mlp([s.dim, s.hidden, s.dim], norm=True)
        self.target = momentum_copy(nn.Sequential(self.encoder, self.projector))
        if (total := sum(self.negatives.weights)) >= 1 and self.comm.rank == 0:
            print(
                f"warning: byol: the negatives have a total weight of {total:g}: from 1 on, pushing away outweighs the "
                "prediction, and the loss has no useful minimum; the paper uses --alpha 0.05",
                file=sys.stderr,
            )

    @classmethod
    def check(cls, setup: Setup) -> None:
        check_statistics("byol", setup.settings.statistics, "separate", "shared")
        at_least("byol.momentum", setup.settings.momentum, 0, 1)

    def begin_step(self, progress: float) -> None:
        m = 1 - (1 - self.settings.momentum) * (math.cos(math.pi * progress) + 1) / 2
        follow(self.target, nn.Sequential(self.encoder, self.projector), m)

    def predict(self, images: Tensor) -> Tensor:
        return unit(self.predictor(self.projector(self.encoder(images))))  # B×C

    @torch.no_grad()
    def aim(self, images: Tensor) -> Tensor:
        return unit(self.target(images))  # B×C

    def similarity_networks(self) -> tuple[nn.Module, nn.Module]:
        return self.projector, self.target

    def forward(self, batch: Batch) -> Step:
        # targets and negatives first: they need no memory beside the activations that the gradient will need
        z, made = {}, {}
        for role in self.views:
            z[role], *made[role] = self.aim_with_negatives(batch, role)
        others = {"first": "second", "second": "first"}
        away = {role: self.with_regular(made[role], z[other]) for role, other in others.items()}
        p = {role: self.predict(batch.views[role]) for role in self.views}
        loss = p["first"].new_zeros(())
        for role, other in others.items():
            loss = loss + byol(p[role], z[other], away[role], alpha=self.negatives.weights)
        return Step(loss / 2, z["first"], z["second"], by_query(made["first"], len(z["first"])))

    def aim_with_negatives(self, batch: Batch, role: str) -> list[Tensor]:
        """The target's B×C of a view, and B·m×C of each kind of negatives that were made of it."""
        images = [batch.views[role], *self.made_of(batch, role)]
        return embed_batches(self.aim, images, self.settings.statistics == "shared")

    def with_regular(self, made: list[Tensor], targets: Tensor) -> Tensor | None:
        """B×M×C, all negatives of a view in the dial's order: those made of it, and other images of the batch."""
        rest, images = iter(made), self.negatives.images
        columns = [next(rest) if k in images else self.another(targets) for k, _ in self.negatives.active]
        return by_query(columns, len(targets))

    def another(self, targets: Tensor) -> Tensor:
        """For each row the target of another image, uniform over the whole batch of all processes."""
        everyone = self.comm.gather(targets)
        n, b = len(everyone), len(targets)
        shift = torch.randint(1, n, (n,), generator=self.generator)
        rows = (torch.arange(n) + shift)[self.comm.rank * b : (self.comm.rank + 1) * b] % n
        return everyone[rows.to(everyone.device)]
