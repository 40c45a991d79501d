"""DenseCL: MoCo on whole images, and on the cells of their feature maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders import Encoder
from cuewise.encoders.heads import unit
from cuewise.encoders.momentum import KeyNetwork
from cuewise.methods import moco
from cuewise.methods.method import Setup, Step, at_least, by_query, embed_batches
from cuewise.methods.queue import Queue
from cuewise.objectives.dense import dense_match, dense_nce


@dataclass(frozen=True)
class Settings(moco.Settings):
    """--set densecl.*"""

    weight: Annotated[float, "of the dense branch (λ)"] = 0.5
    warmup: Annotated[float, "share of training in which the weight is 0"] = 0.0
    hidden: Annotated[int | None, "width of the dense head [the width of the feature map]"] = None


class Projections(NamedTuple):
    """What both branches need of a batch of views, of unit length."""

    z: Tensor  # B×C, of the whole image
    dense: Tensor  # B×C×S, of each cell
    cells: Tensor  # B×F×S, backbone features of each cell, without gradient


def project(encoder: Encoder, projector: nn.Module, dense: nn.Module, images: Tensor) -> Projections:
    """Both projections and the backbone's cells from one pass; z has the length that the projector gives it."""
    f = encoder.features(images)
    return Projections(projector(f.pooled), unit(dense(f.map).flatten(2)), unit(f.map.detach().flatten(2)))


def normalised(found: Projections) -> Projections:
    """The same, all of unit length."""
    return found._replace(z=unit(found.z))


def dense_head(encoder: Encoder, hidden: int | None, dim: int) -> nn.Sequential:
    """The projector of cells: B×F×H×W → B×C×H×W."""
    width = encoder.map_dim
    hidden = hidden or width
    return nn.Sequential(nn.Conv2d(width, hidden, 1), nn.ReLU(inplace=True), nn.Conv2d(hidden, dim, 1))


class DenseKeys(KeyNetwork):
    """The momentum copy of encoder, projector and dense projector; z has the length that the projector gives it."""

    def forward(self, images: Tensor) -> Projections:
        encoder, projector, dense = self
        return project(encoder, projector, dense, images)  # type: ignore[arg-type]


class DenseCL(moco.MoCo):
    """L = (1 − λ)·L_global + λ·L_dense; a cell's positive is the key cell whose backbone features are most alike, its
    negatives are pooled dense keys of other images. Non-semantic negatives join the global branch."""

    name = "densecl"
    summary = "MoCo on images and on the cells of their feature maps (DenseCL), and non-semantic negatives"
    citation = "Wang et al. 2021; negatives: Ge et al. 2021"
    equation = (
        "L = (1 − λ) L_moco + λ · mean over cells c of −log e^{q_c·k_m(c)/τ} / (e^{q_c·k_m(c)/τ} + Σ_k e^{q_c·k/τ})\n"
        "m(c): the cell of the key whose backbone features are most alike; k: pooled dense keys of other images"
    )
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.dense = dense_head(self.encoder, s.hidden, s.dim)
        query = (self.encoder, self.projector, self.dense)
        self.key_network = moco.key_network(s, self.generator, *query, kind=DenseKeys)
        self.dense_queue = Queue(s.queue or 0, s.dim, self.generator)

    @classmethod
    def check(cls, setup: Setup) -> None:
        super().check(setup)
        at_least("densecl.weight", setup.settings.weight, 0, 1)
        at_least("densecl.warmup", setup.settings.warmup, 0, 1)

    def begin_step(self, progress: float) -> None:
        self.progress = progress
        self.key_network.follow(self.encoder, self.projector, self.dense)

    def forward(self, batch: Batch) -> Step:
        negatives = self.made_of(batch, "query")  # B·m×3×H×W per kind
        learned, fixed = (negatives, []) if self.settings.negatives_gradient else ([], negatives)
        k, *ns_fixed = map(normalised, self.key_network.embed([batch.views["key"], *fixed]))
        q, *ns_learned = map(normalised, self.embed_queries([batch.views["query"], *learned]))
        ns = by_query([n.z for n in (*ns_fixed, *ns_learned)], len(q.z))  # B×M×C
        tau, weight = self.settings.temperature, self.dense_weight
        with torch.autocast(q.z.device.type, enabled=False):
            s_n = q.z @ self.queue.keys.T  # B×K
            s_ns = torch.einsum("bc,bmc->bm", q.z, self.own(ns)) if ns is not None else None  # B×M
            whole = self.contrast(q.z, (q.z * k.z).sum(1), s_n, s_ns)
            cells = dense_nce(q.dense, k.dense, dense_match(q.cells, k.cells), self.dense_queue.keys, tau=tau)
        self.queue.hold(k.z)
        self.dense_queue.hold(unit(k.dense.mean(2)))
        extra = {"loss_global": whole.detach(), "loss_dense": cells.detach()}
        loss = (1 - weight) * whole + weight * cells
        return Step(loss, q.z.detach(), k.z, None if ns is None else ns.detach(), extra)

    @property
    def dense_weight(self) -> float:
        """λ, 0 while training is in its warm-up."""
        return 0.0 if self.progress < self.settings.warmup else float(self.settings.weight)

    def embed_queries(self, images: list[Tensor]) -> list[Any]:
        """Queries, and negatives that take gradient."""
        shared = self.settings.statistics == "shared"
        return embed_batches(lambda x: project(self.encoder, self.projector, self.dense, x), images, shared)
