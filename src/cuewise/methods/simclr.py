"""SimCLR, with non-semantic negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cuewise.encoders.heads import mlp, unit
from cuewise.methods.hard import Contrast, everyones_rows
from cuewise.methods.method import (
    Method,
    MethodSettings,
    Step,
    centred,
    check_share,
    check_statistics,
    embed_batches,
    negative_role,
)
from cuewise.objectives.nt_xent import in_batch, nt_xent


@dataclass(frozen=True)
class Settings(MethodSettings):
    """temperature (τ), hidden width and dim of the projector; whether negatives take gradient."""

    temperature: float = 0.5
    hidden: int = 512
    dim: int = 128
    negatives_stop_gradient: bool = False
    statistics: str = "separate"  # or "shared": a view and its negatives in one forward batch
    center: float = 0.0  # share of the mean negative that is taken off each negative, 0 (as published) to 1


class SimCLR(Method):
    """Each of 2B views finds its other half among all views of the batch, on all processes."""

    name = "simclr"
    summary = "in-batch contrast of two views (SimCLR), and non-semantic negatives"
    citation = "Chen et al. 2020; negatives: Ge et al. 2021"
    views = {"first": "simclr", "second": "simclr"}
    negatives_from = ("first", "second")
    negative_kinds = ("patch", "texture")
    takes_hard = True
    optim = {"name": "adam", "lr": 1e-3, "reference_batch": 256, "weight_decay": 1e-6}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        check_share(self.name, s.center)
        check_statistics(self.name, s.statistics, "separate", "shared")
        self.projector = mlp([self.encoder.dim, s.hidden, s.dim], norm=True)

    def begin_step(self, progress: float) -> None:
        self.progress = progress

    def embed(self, images: Tensor) -> Tensor:
        return unit(self.projector(self.encoder(images)))

    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        first, ns_first = self.embed_with_negatives(views, "first")  # B×C, B×M×C
        second, ns_second = self.embed_with_negatives(views, "second")
        z = (first, second)
        ns = (ns_first, ns_second) if ns_first is not None and ns_second is not None else None
        everyone = (self.comm.gather(z[0]), self.comm.gather(z[1]))  # W·B×C each
        with torch.autocast(z[0].device.type, enabled=False):
            loss = self.contrast(z, everyone, None if ns is None else (self.own(ns[0]), self.own(ns[1])))
        return Step(loss, z[0].detach(), z[1].detach(), None if ns is None else ns[0].detach())

    def own(self, ns: Tensor) -> Tensor:
        return centred(ns, self.settings.center, self.comm)

    def contrast(
        self, z: tuple[Tensor, Tensor], everyone: tuple[Tensor, Tensor], ns: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """The loss of both views of all images, made harder where --hard says so."""
        tau, dial, offset = self.settings.temperature, self.negatives, self.comm.rank * len(z[0])
        if self.hard is None:
            return nt_xent(z, everyone, ns, tau=tau, alpha=dial.weights, mode=dial.mode, offset=offset)
        s_p, s_n, columns = in_batch(z, everyone, offset=offset)  # 2B, 2B×(2WB−2)
        q = torch.cat(z)  # 2B×C
        s_ns = torch.einsum("bc,bmc->bm", q, torch.cat(ns)) if ns is not None else None  # 2B×M

        def rows() -> tuple[int, Tensor]:
            return everyones_rows(self.comm, len(q), 2, q.device)

        bank = torch.cat(everyone)  # 2WB×C
        return self.hard.loss(
            Contrast(q, bank, s_p, s_n, s_ns, columns, tau, dial, self.progress, rows, self.generator)
        )

    def embed_with_negatives(self, views: dict[str, Tensor], source: str) -> tuple[Tensor, Tensor | None]:
        """A view B×C and the negatives made of it B×M×C; each batch of negatives passes by itself unless shared."""
        images = [
            views[source],
            *(views[negative_role(k, source)].flatten(0, 1) for k in self.negatives.images),
        ]
        z, *parts = embed_batches(self.embed, images, self.settings.statistics == "shared")
        if not parts:
            return z, None
        ns = torch.cat([p.unflatten(0, (len(z), -1)) for p in parts], dim=1)
        return z, ns.detach() if self.settings.negatives_stop_gradient else ns
