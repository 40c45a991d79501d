"""SimCLR, with non-semantic negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cuewise.encoders.heads import mlp, unit
from cuewise.methods.method import Method, MethodSettings, Step, negative_role
from cuewise.objectives.nt_xent import nt_xent


@dataclass(frozen=True)
class Settings(MethodSettings):
    """temperature (τ), hidden width and dim of the projector; whether negatives take gradient."""

    temperature: float = 0.5
    hidden: int = 512
    dim: int = 128
    negatives_stop_gradient: bool = False


class SimCLR(Method):
    """Each of 2B views finds its other half among all views of the batch, on all processes."""

    name = "simclr"
    summary = "in-batch contrast of two views (SimCLR), and non-semantic negatives"
    citation = "Chen et al. 2020; negatives: Ge et al. 2021"
    views = {"first": "simclr", "second": "simclr"}
    negatives_from = ("first", "second")
    negative_kinds = ("patch", "texture")
    optim = {"name": "adam", "lr": 1e-3, "reference_batch": 256, "weight_decay": 1e-6}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.projector = mlp([self.encoder.dim, s.hidden, s.dim], norm=True)

    def embed(self, images: Tensor) -> Tensor:
        return unit(self.projector(self.encoder(images)))

    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        z = (self.embed(views["first"]), self.embed(views["second"]))  # B×C each
        everyone = (self.comm.gather(z[0]), self.comm.gather(z[1]))  # W·B×C each
        ns = self.embed_negatives(views)
        with torch.autocast(z[0].device.type, enabled=False):
            loss = nt_xent(
                z,
                everyone,
                ns,
                tau=self.settings.temperature,
                alpha=self.negatives.weights,
                mode=self.negatives.mode,
                offset=self.comm.rank * len(z[0]),
            )
        return Step(loss, z[0].detach(), z[1].detach(), None if ns is None else ns[0].detach())

    def embed_negatives(self, views: dict[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Two B×M×C, made of the first and of the second view; every batch of negatives passes on its own."""
        if not self.negatives.images:
            return None

        def of(source: str) -> Tensor:
            batches = [views[negative_role(kind, source)] for kind in self.negatives.images]  # B×m×3×H×W
            z = [self.embed(x.flatten(0, 1)).unflatten(0, x.shape[:2]) for x in batches]
            return torch.cat(z, dim=1)

        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.settings.negatives_stop_gradient):
            return of("first"), of("second")
