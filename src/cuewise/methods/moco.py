"""MoCo-v2, with non-semantic negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Self

import torch
from torch import Tensor

from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.encoders.momentum import KeyNetwork
from cuewise.methods.hard import Contrast, everyones_rows
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
from cuewise.methods.queue import Queue
from cuewise.objectives.nce import extended_nce


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set moco.*"""

    queue: Annotated[
        int | None, "keys in the queue (K) [about an eighth of the images, a power of two, 65,536 at most]"
    ] = None
    temperature: Annotated[float, "of the softmax (τ)"] = 0.2
    momentum: Annotated[
        float | None, "of the key network (m) [1 − 4/K, from 0.99 to 0.999: the longer the queue, the slower]"
    ] = None
    dim: Annotated[int, "of the embedding"] = 128
    groups: Annotated[int, "batch-norm groups of the key side; a group keeps at least 32 images"] = 8
    statistics: Annotated[
        str, "batch statistics of the key side: separate passes for keys and negatives, shared passes, or ema"
    ] = "separate"
    center: Annotated[float, "share of the mean negative that is subtracted from each, 0 to 1"] = 0.0
    negatives_gradient: Annotated[bool, "negatives pass the query's encoder and take gradient"] = False

    def fitted(self, images: int, steps: int) -> Self:
        # the papers keep 16,384 keys for 125,000 images and 65,536 for 1.28 million
        power = max(8, min(16, round(math.log2(max(images, 2) / 8))))
        queue = 2**power if self.queue is None else self.queue
        # old keys stand beside new ones: the more of them, the less the network may have moved in between
        momentum = min(max(1 - 4 / max(queue, 1), 0.99), 0.999) if self.momentum is None else self.momentum
        return replace(self, queue=queue, momentum=momentum)


class MoCo(Method):
    """A query is distinguished from K queued keys and from its own negatives; gradient flows through the query, and with
    `negatives_gradient` through the negatives."""

    name = "moco"
    summary = "momentum contrast with a queue (MoCo-v2), and non-semantic negatives"
    citation = "He et al. 2020; Chen et al. 2020 (MoCo-v2); negatives: Ge et al. 2021"
    equation = (
        "L = −log e^{s_p/τ} / (e^{s_p/τ} + Σ_n e^{α s_n/τ} + Σ_k e^{s_k/τ})\n"
        "s_p = q·k⁺ (the key of the same image), s_k = q·k (the queue), s_n = q·n (its own negatives, --alpha-mode in)"
    )
    views = {"query": "moco-v2", "key": "moco-v2"}
    negatives_from = ("query",)
    takes_hard = True
    # 0.03 is for a million steps; short_lr: docs/pretrain.md, short runs
    optim = {"name": "sgd", "lr": 0.03, "short_lr": 0.24, "reference_batch": 256, "weight_decay": 1e-4}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        d = self.encoder.dim
        self.projector = mlp([d, d, s.dim])
        self.key_network = key_network(s, self.generator, self.encoder, self.projector)
        self.queue = Queue(s.queue or 0, s.dim, self.generator)

    @classmethod
    def check(cls, setup: Setup) -> None:
        check_momentum(cls.name, setup)

    @property
    def chance_loss(self) -> float:
        return math.log(self.settings.queue + 1)

    def begin_step(self, progress: float) -> None:
        self.progress = progress
        self.key_network.follow(self.encoder, self.projector)

    def forward(self, batch: Batch) -> Step:
        # keys first: once the query's activations are held for its gradient, each map of a key would be fresh memory
        negatives = self.made_of(batch, "query")  # B·m×3×H×W per kind
        learned, fixed = (negatives, []) if self.settings.negatives_gradient else ([], negatives)
        k, *ns_fixed = map(unit, self.key_network.embed([batch.views["key"], *fixed]))  # B×C
        q, *ns_learned = self.embed_queries([batch.views["query"], *learned])  # B×C
        ns = by_query(ns_fixed + ns_learned, len(q))  # B×M×C
        with torch.autocast(q.device.type, enabled=False):
            s_p = (q * k).sum(1)  # B
            s_n = q @ self.queue.keys.T  # B×K
            s_ns = torch.einsum("bc,bmc->bm", q, self.own(ns)) if ns is not None else None  # B×M
            loss = self.contrast(q, s_p, s_n, s_ns)
        self.queue.hold(k)
        return Step(loss, q.detach(), k, None if ns is None else ns.detach())

    def contrast(self, q: Tensor, s_p: Tensor, s_n: Tensor, s_ns: Tensor | None) -> Tensor:
        """The loss of similarities B, B×K, B×M, made harder where --hard says so."""
        tau, dial = self.settings.temperature, self.negatives
        if self.hard is None:
            return extended_nce(s_p, s_n, s_ns, tau=tau, alpha=dial.weights, mode=dial.mode)
        rows = partial(everyones_rows, self.comm, len(q), 1, q.device)
        return self.hard.loss(
            Contrast(q, self.queue.keys, s_p, s_n, s_ns, None, tau, dial, self.progress, rows, self.generator)
        )

    def embed_queries(self, images: list[Tensor]) -> list[Tensor]:
        """Queries, and negatives that take gradient."""
        shared = self.settings.statistics == "shared"
        return embed_batches(lambda x: unit(self.projector(self.encoder(x))), images, shared)

    def own(self, ns: Tensor) -> Tensor:
        return centred(ns, self.settings.center, self.comm)


def key_network(
    s: Settings, generator: torch.Generator, *query: torch.nn.Module, kind: type[KeyNetwork] = KeyNetwork
) -> KeyNetwork:
    """The momentum copy of a query network as MoCo's settings say."""
    return kind(
        *query, momentum=s.momentum or 0.0, statistics=s.statistics, groups=s.groups, generator=generator
    )


def check_momentum(name: str, setup: Setup) -> None:
    """The settings that all methods with a queue and a momentum network share."""
    s: Settings = setup.settings
    check_statistics(name, s.statistics, "separate", "shared", "ema")
    at_least(f"{name}.center", s.center, 0, 1)
    at_least(f"{name}.groups", s.groups, 1)
    at_least(f"{name}.queue", s.queue, 1)
    at_least(f"{name}.momentum", s.momentum, 0, 1)
