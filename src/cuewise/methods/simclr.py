"""SimCLR, with non-semantic negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.methods.in_batch import contrast_views
from cuewise.methods.method import (
    Method,
    MethodSettings,
    Setup,
    Step,
    at_least,
    by_query,
    centred,
    check_statistics,
    embed_batches,
)


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set simclr.*"""

    temperature: Annotated[float, "of the softmax (τ)"] = 0.5
    hidden: Annotated[int, "width of the projector's hidden layer"] = 512
    dim: Annotated[int, "of the embedding"] = 128
    negatives_stop_gradient: Annotated[bool, "negatives take no gradient"] = False
    statistics: Annotated[
        str, "batch statistics of the negatives: separate, or shared with their view in one batch"
    ] = "separate"
    center: Annotated[float, "share of the mean negative that is subtracted from each, 0 to 1"] = 0.0


class SimCLR(Method):
    """Each of 2B views finds its other half among all views of the batch, on all processes."""

    name = "simclr"
    summary = "in-batch contrast of two views (SimCLR), and non-semantic negatives"
    citation = "Chen et al. 2020; negatives: Ge et al. 2021"
    equation = (
        "L = −log e^{s_p/τ} / (e^{s_p/τ} + Σ_n e^{α s_n/τ} + Σ_k e^{s_k/τ}), the mean over all 2B views\n"
        "s_p: the other view of the image, s_k: all views of other images, s_n: the view's own negatives"
    )
    views = {"first": "simclr", "second": "simclr"}
    negatives_from = ("first", "second")
    takes_hard = True
    optim = {"name": "adam", "lr": 1e-3, "reference_batch": 256, "weight_decay": 1e-6}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.projector = mlp([self.encoder.dim, s.hidden, s.dim], norm=True)

    @classmethod
    def check(cls, setup: Setup) -> None:
        at_least("simclr.center", setup.settings.center, 0, 1)
        check_statistics("simclr", setup.settings.statistics, "separate", "shared")

    def embed(self, images: Tensor) -> Tensor:
        return unit(self.projector(self.encoder(images)))

    def forward(self, batch: Batch) -> Step:
        first, ns_first = self.embed_with_negatives(batch, "first")  # B×C, B×M×C
        second, ns_second = self.embed_with_negatives(batch, "second")
        z = (first, second)
        ns = (ns_first, ns_second) if ns_first is not None and ns_second is not None else None
        everyone = (self.comm.gather(z[0]), self.comm.gather(z[1]))  # W·B×C each
        with torch.autocast(z[0].device.type, enabled=False):
            own = None if ns is None else (self.own(ns[0]), self.own(ns[1]))
            loss = contrast_views(self, z, everyone, own, self.settings.temperature)
        return Step(loss, z[0].detach(), z[1].detach(), None if ns is None else ns[0].detach())

    def own(self, ns: Tensor) -> Tensor:
        return centred(ns, self.settings.center, self.comm)

    def embed_with_negatives(self, batch: Batch, source: str) -> tuple[Tensor, Tensor | None]:
        """A view B×C and the negatives made of it B×M×C; each batch of negatives passes by itself unless shared."""
        images = [batch.views[source], *self.made_of(batch, source)]
        z, *parts = embed_batches(self.embed, images, self.settings.statistics == "shared")
        ns = by_query(parts, len(z))
        return z, ns.detach() if ns is not None and self.settings.negatives_stop_gradient else ns
