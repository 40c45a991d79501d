"""LooC, leave-one-out contrastive learning: a space for each cue that is kept, one that is invariant to all; and LooC++."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.heads import unit
from cuewise.encoders.momentum import follow, follow_statistics, forward_in_groups, momentum_copy
from cuewise.encoders.spaces import Heads, check_split
from cuewise.errors import UserError
from cuewise.methods import moco
from cuewise.methods.method import Method, Shown, Step, centred, check_share, check_statistics, negative_role
from cuewise.objectives.looc import space_losses


@dataclass(frozen=True)
class Settings(moco.Settings):
    """As MoCo's, a queue for each space; hidden width of the heads, plus_plus (LooC++), mask_equal."""

    hidden: int | None = None  # None: the width of the features, 2,048 for ResNet-50 as published
    plus_plus: bool = False  # each head has a copy of the last stage (conv5) of its own
    mask_equal: bool = False  # a key that shares the query's left-out parameter by chance is no negative


class LooC(Method):
    """Space 0 is MoCo; in space i the key that shares augmentation i with the query is told from the image's other keys."""

    name = "looc"
    summary = (
        "one space for each augmentation of --leave-out, sensitive to it and invariant to the rest (LooC)"
    )
    citation = "Xiao et al. 2021; negatives: Ge et al. 2021"
    views = {"query": "moco-v2", "key": "moco-v2"}
    negatives_from = ("query",)
    negative_kinds = ("patch", "texture")
    leaves_out = True
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
        if s.negatives_gradient:
            raise UserError(
                f"{self.name}.negatives_gradient is for moco, infomin: the negatives of looc take none"
            )
        if s.plus_plus:
            check_split(self.encoder)
        assert s.queue is not None
        names = self.space_names()
        self.heads = Heads(self.encoder, names, s.hidden or self.encoder.dim, s.dim, s.plus_plus)
        self.key_network = momentum_copy(nn.Sequential(self.encoder, self.heads))
        start = torch.randn(len(names), s.queue, s.dim, generator=self.generator)
        self.register_buffer("queue", F.normalize(start, dim=2))  # (n+1)×K×C: space i holds z_i of k_i only
        self.register_buffer("position", torch.zeros((), dtype=torch.long))
        self.pending: Tensor | None = None

    @classmethod
    def shown(cls, leave_out: Sequence[str] = ()) -> tuple[Shown, ...]:
        """Query and k₀ are independent; k_i shares augmentation i with the query and nothing else."""
        pair = (
            Shown("query", "moco-v2", adds=tuple(leave_out)),
            Shown("key", "moco-v2", adds=tuple(leave_out)),
        )
        own = (Shown(f"key:{a}", "moco-v2", adds=tuple(leave_out), shares=(a,)) for a in leave_out)
        return (*pair, *own)

    def space_names(self) -> tuple[str, ...]:
        return ("z0", *self.leave_out)

    def key_columns(self, i: int) -> list[int]:
        """Which keys are seen in space i, the positive first: k₀ alone in space 0, all of them in the others."""
        n = len(self.leave_out)
        return [0] if i == 0 else [i, *(j for j in range(n + 1) if j != i)]

    @property
    def projector(self) -> nn.Module:
        """The head of the invariant space, on the encoder's features."""
        return self.heads.mlps[0]

    @property
    def key_embedder(self) -> nn.Module:
        """The same of the momentum network."""
        encoder, heads = self.key_network
        return nn.Sequential(encoder, heads.mlps[0])  # type: ignore[index,arg-type]

    @property
    def chance_loss(self) -> float:
        choices = [self.settings.queue + len(self.key_columns(i)) for i in range(len(self.heads.names))]
        return sum(math.log(c) for c in choices) / len(choices)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.settings.statistics == "ema":
            self.key_network.eval()
        return self

    def begin_step(self, progress: float) -> None:
        m, query = self.settings.momentum, nn.Sequential(self.encoder, self.heads)
        follow(self.key_network, query, m)
        if self.settings.statistics == "ema":
            follow_statistics(self.key_network, query, m)

    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        keys, ns = self.embed_keys(views)  # n+1 times B×J×C, B×M×C; first, as in MoCo
        q = self.heads(self.encoder, self.heads.trunk(self.encoder)(views["query"]))  # n+1 times B×C
        with torch.autocast(q[0].device.type, enabled=False):
            losses = space_losses(
                q,
                keys,
                self.queue,
                tau=self.settings.temperature,
                equal=self.equal_by_chance(views),
                ns=None if ns is None else centred(ns, self.settings.center, self.comm),
                alpha=self.negatives.weights,
                mode=self.negatives.mode,
            )
        self.pending = torch.stack([k[:, 0] for k in keys], dim=1)  # B×(n+1)×C
        extra = dict(zip((f"loss_{name}" for name in self.heads.names), losses.detach()))
        return Step(losses.mean(), q[0].detach(), keys[0][:, 0], ns, extra if len(losses) > 1 else {})

    def equal_by_chance(self, views: dict[str, Tensor]) -> list[Tensor | None] | None:
        """With mask_equal, for each space B×(J−1): does that key share the query's parameter?"""
        if not self.settings.mask_equal:
            return None
        out: list[Tensor | None] = [None]
        for i, name in enumerate(self.leave_out, start=1):
            out.append(views[f"equal:{name}"][:, self.key_columns(i)[1:]].bool())
        return out

    def key_roles(self) -> tuple[str, ...]:
        return ("key", *(f"key:{name}" for name in self.leave_out))

    @torch.no_grad()
    def embed_keys(self, views: dict[str, Tensor]) -> tuple[list[Tensor], Tensor | None]:
        """Keys in the spaces that need them (n+1 times B×J×C), and negatives in space 0 (B×M×C), of the momentum network.

        All keys pass at once in randomly composed groups, so none can be told by the statistics of its batch; negatives
        pass by themselves unless shared, as in MoCo.
        """
        images = [views[role] for role in self.key_roles()]
        kinds = [negative_role(kind, "query") for kind in self.negatives.images]
        extra = [views[role].flatten(0, 1) for role in kinds]  # B·M×3×H×W
        b, groups = len(images[0]), self.groups(len(images[0]))
        trunk = self.key_network[1].trunk(self.key_network[0])  # type: ignore[operator]
        if self.settings.statistics == "shared":
            every = self.in_groups(trunk, torch.cat([*images, *extra]), groups * len(images))
            v, *v_extra = every.split([b * len(images), *map(len, extra)])
        else:
            v = self.in_groups(trunk, torch.cat(images), groups * len(images))
            v_extra = [self.in_groups(trunk, x, groups) for x in extra]
        keys = []
        for i in range(len(self.heads.names)):
            columns = self.key_columns(i)
            z = self.embed_in(i, v if len(columns) > 1 else v[:b], groups * len(columns))  # J·B×C
            keys.append(z.unflatten(0, (-1, b))[columns].transpose(0, 1))
        ns = [self.embed_in(0, x, groups).unflatten(0, (b, -1)) for x in v_extra]
        return keys, torch.cat(ns, dim=1) if ns else None

    def embed_in(self, i: int, v: Tensor, groups: int) -> Tensor:
        """z_i of the momentum network from what its trunk gave."""
        encoder, heads = self.key_network
        stage = heads.stage(encoder, i)  # type: ignore[operator]
        features = v if stage is None else self.in_groups(stage, v, groups).mean(dim=(2, 3))
        return unit(heads.mlps[i](features))  # type: ignore[index,operator]

    def groups(self, batch: int) -> int:
        return max(1, min(self.settings.groups, batch // 32)) if self.settings.statistics != "ema" else 1

    def in_groups(self, network: nn.Module, x: Tensor, groups: int) -> Tensor:
        alone = self.settings.statistics == "ema"  # running statistics: nothing to group
        return forward_in_groups(network, x, 1 if alone else groups, self.generator)

    @torch.no_grad()
    def after_backward(self) -> None:
        """First in, first out, all queues in step."""
        if self.pending is None:
            return
        K = self.queue.shape[1]
        keys = self.comm.gather(self.pending)[-K:].transpose(0, 1)  # (n+1)×B×C
        rows = (torch.arange(keys.shape[1], device=keys.device) + self.position) % K
        self.queue.index_copy_(1, rows, keys.to(self.queue.dtype))
        self.position.copy_((self.position + keys.shape[1]) % K)
        self.pending = None
