"""MoCo-v2, with non-semantic negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.heads import mlp, unit
from cuewise.encoders.momentum import follow, follow_statistics, forward_in_groups, momentum_copy
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
from cuewise.objectives.nce import extended_nce


@dataclass(frozen=True)
class Settings(MethodSettings):
    """queue (K), temperature (τ), momentum (m), dim of the embedding, groups of the key side's batch statistics."""

    queue: int | None = None  # None: about an eighth of the images, a power of two, 65,536 at most
    temperature: float = 0.2
    momentum: float | None = None  # None: 0.999, or 0.99 for runs under 20,000 steps
    dim: int = 128
    groups: int = 8  # batch-norm groups of the key side; a group keeps at least 32 images
    # batch statistics of the key side: "separate" passes for keys and negatives, as published; "shared" passes; or
    # "ema", running statistics that follow the query's, so that no batch can be told by its statistics
    statistics: str = "separate"
    center: float = 0.0  # share of the mean negative that is taken off each negative, 0 (as published) to 1
    negatives_gradient: bool = False  # negatives pass the query's encoder, and are themselves pushed away

    def fitted(self, images: int, steps: int) -> Settings:
        # the papers keep 16,384 keys for 125,000 images and 65,536 for 1.28 million
        queue = 2 ** max(8, min(16, round(math.log2(max(images, 2) / 8))))
        momentum = 0.999 if steps >= 20_000 else 0.99
        return replace(self, queue=self.queue or queue, momentum=self.momentum or momentum)


class MoCo(Method):
    """A query is told from K queued keys and from its own negatives; gradient flows through the query, and where
    `negatives_gradient` says so through the negatives."""

    name = "moco"
    summary = "momentum contrast with a queue (MoCo-v2), and non-semantic negatives"
    citation = "He et al. 2020; Chen et al. 2020 (MoCo-v2); negatives: Ge et al. 2021"
    views = {"query": "moco-v2", "key": "moco-v2"}
    negatives_from = ("query",)
    negative_kinds = ("patch", "texture")
    takes_hard = True
    optim = {"name": "sgd", "lr": 0.03, "reference_batch": 256, "weight_decay": 1e-4}
    Settings = Settings
    queue: Tensor
    position: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings.fitted(1 << 19, 1 << 20)
        self.settings = s
        check_statistics(self.name, s.statistics, "separate", "shared", "ema")
        check_share(self.name, s.center)
        assert s.queue is not None
        d = self.encoder.dim
        self.projector = mlp([d, d, s.dim])
        self.key_network = momentum_copy(nn.Sequential(self.encoder, self.projector))
        start = torch.randn(s.queue, s.dim, generator=self.generator)
        self.register_buffer("queue", F.normalize(start, dim=1))  # K×C
        self.register_buffer("position", torch.zeros((), dtype=torch.long))
        self.pending: Tensor | None = None

    @property
    def chance_loss(self) -> float:
        return math.log(self.settings.queue + 1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.settings.statistics == "ema":
            self.key_network.eval()
        return self

    def begin_step(self, progress: float) -> None:
        self.progress = progress
        m, query = self.settings.momentum, nn.Sequential(self.encoder, self.projector)
        follow(self.key_network, query, m)
        if self.settings.statistics == "ema":
            follow_statistics(self.key_network, query, m)

    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        # keys first: once the query's activations are held for its gradient, each map of a key would be fresh memory
        negatives = [views[negative_role(kind, "query")].flatten(0, 1) for kind in self.negatives.images]
        learned, fixed = (negatives, []) if self.settings.negatives_gradient else ([], negatives)  # B·m×3×H×W
        k, *ns_fixed = self.embed_keys([views["key"], *fixed])
        q, *ns_learned = self.embed_queries([views["query"], *learned])  # B×C
        ns = by_query(ns_fixed + ns_learned, len(q))  # B×M×C
        with torch.autocast(q.device.type, enabled=False):
            s_p = (q * k).sum(1)  # B
            s_n = q @ self.queue.T  # B×K
            s_ns = torch.einsum("bc,bmc->bm", q, self.own(ns)) if ns is not None else None  # B×M
            loss = self.contrast(q, s_p, s_n, s_ns)
        self.pending = k  # the queue still holds only earlier keys: a query never meets its own key there
        return Step(loss, q.detach(), k, None if ns is None else ns.detach())

    def contrast(self, q: Tensor, s_p: Tensor, s_n: Tensor, s_ns: Tensor | None) -> Tensor:
        """The loss of similarities B, B×K, B×M, made harder where --hard says so."""
        tau, dial = self.settings.temperature, self.negatives
        if self.hard is None:
            return extended_nce(s_p, s_n, s_ns, tau=tau, alpha=dial.weights, mode=dial.mode)

        def rows() -> tuple[int, Tensor]:
            return everyones_rows(self.comm, len(q), 1, q.device)

        return self.hard.loss(
            Contrast(q, self.queue, s_p, s_n, s_ns, None, tau, dial, self.progress, rows, self.generator)
        )

    @torch.no_grad()
    def embed_keys(self, images: list[Tensor]) -> list[Tensor]:
        """Keys and negatives through the momentum network; negatives in passes of their own unless shared."""
        return embed_batches(lambda x: self.key_forward(x, len(images[0])), images, self.shares)

    def embed_queries(self, images: list[Tensor]) -> list[Tensor]:
        """Queries, and negatives that take gradient."""
        return embed_batches(lambda x: unit(self.projector(self.encoder(x))), images, self.shares)

    @property
    def shares(self) -> bool:
        return self.settings.statistics == "shared"

    def own(self, ns: Tensor) -> Tensor:
        return centred(ns, self.settings.center, self.comm)

    def key_forward(self, images: Tensor, batch: int) -> Tensor:
        groups = max(1, min(self.settings.groups, batch // 32)) if self.settings.statistics != "ema" else 1
        return unit(forward_in_groups(self.key_network, images, groups, self.generator))

    @torch.no_grad()
    def after_backward(self) -> None:
        """First in, first out; the queue's length need not be a multiple of the batch."""
        if self.pending is None:
            return
        keys = self.comm.gather(self.pending)[-len(self.queue) :]
        K = len(self.queue)
        rows = (torch.arange(len(keys), device=keys.device) + self.position) % K
        self.queue.index_copy_(0, rows, keys.to(self.queue.dtype))
        self.position.copy_((self.position + len(keys)) % K)
        self.pending = None


def by_query(ns: list[Tensor], batch: int) -> Tensor | None:
    """B·m×C of each kind → B×M×C."""
    return torch.cat([n.unflatten(0, (batch, -1)) for n in ns], dim=1) if ns else None
