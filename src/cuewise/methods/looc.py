"""LooC, leave-one-out contrastive learning: a space for each cue that is kept, one that is invariant to all; and LooC++."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders.heads import unit
from cuewise.encoders.spaces import Heads, check_split
from cuewise.errors import UserError
from cuewise.methods import moco
from cuewise.methods.method import Method, Setup, Step, ViewSpec, by_query, centred
from cuewise.methods.queue import Queue
from cuewise.objectives.looc import space_losses


@dataclass(frozen=True)
class Settings(moco.Settings):
    """--set looc.*"""

    hidden: Annotated[int | None, "width of the heads' hidden layer [the width of the features]"] = None
    plus_plus: Annotated[bool, "each head has its own copy of the last stage (LooC++)"] = False
    mask_equal: Annotated[
        bool, "a key that shares the query's left-out parameter by chance is no negative"
    ] = False


class LooC(Method):
    """Space 0 is MoCo; in space i the key that shares augmentation i with the query is contrasted with the image's other keys."""

    name = "looc"
    summary = (
        "one space for each augmentation of --leave-out, sensitive to it and invariant to the rest (LooC)"
    )
    citation = "Xiao et al. 2021; negatives: Ge et al. 2021"
    example = "--leave-out color"
    equation = (
        "L = mean over the spaces i of −log e^{q_i·k_i/τ} / (e^{q_i·k_i/τ} + Σ_{j≠i} e^{q_i·k_j/τ} + Σ_queue e^{q_i·k/τ})\n"
        "k_0: all augmentations drawn independently; k_i: augmentation i as the query's. Space 0 has k_0 and its queue alone"
    )
    views = {"query": "moco-v2", "key": "moco-v2"}
    negatives_from = ("query",)
    leaves_out = True
    optim = moco.MoCo.optim
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        if s.plus_plus:
            check_split(self.encoder)
        names = self.space_names()
        self.heads = Heads(self.encoder, names, s.hidden or self.encoder.dim, s.dim, s.plus_plus)
        self.key_network = moco.key_network(s, self.generator, self.encoder, self.heads)
        self.queue = Queue(s.queue or 0, s.dim, self.generator, len(names))  # space i holds z_i of k_i only

    @classmethod
    def check(cls, setup: Setup) -> None:
        moco.check_momentum(cls.name, setup)
        s: Settings = setup.settings
        if s.negatives_gradient:
            raise UserError(
                f"{cls.name}.negatives_gradient is for moco and infomin: the negatives of {cls.name} take none"
            )
        if s.mask_equal and not setup.leave_out:
            raise UserError(f"{cls.name}.mask_equal has no meaning without --leave-out")
        if "color" in setup.leave_out and not setup.color_jitter:
            raise UserError("--leave-out color needs colour jitter: remove --no-color-jitter")

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        """Query and k₀ are independent; k_i shares augmentation i with the query and nothing else."""
        every = setup.leave_out
        pair = (ViewSpec("query", "moco-v2", adds=every), ViewSpec("key", "moco-v2", adds=every))
        return (*pair, *(ViewSpec(f"key:{a}", "moco-v2", adds=every, shares=(a,)) for a in every))

    @classmethod
    def compared(cls, setup: Setup) -> tuple[str, ...]:
        return setup.leave_out if setup.settings.mask_equal else ()

    def space_names(self) -> tuple[str, ...]:
        return ("z0", *self.leave_out)

    def key_columns(self, i: int) -> list[int]:
        """Which keys are seen in space i, the positive first: k₀ alone in space 0, all of them in the others."""
        n = len(self.leave_out)
        return [0] if i == 0 else [i, *(j for j in range(n + 1) if j != i)]

    def own_spaces(self) -> Heads:
        return self.heads

    def similarity_networks(self) -> tuple[nn.Module, nn.Module]:
        """The head of the invariant space, and the same of the momentum network."""
        encoder, heads = self.key_network
        return self.heads.mlps[0], nn.Sequential(encoder, heads.mlps[0])  # type: ignore[index,arg-type]

    @property
    def chance_loss(self) -> float:
        choices = [self.settings.queue + len(self.key_columns(i)) for i in range(len(self.heads.names))]
        return sum(math.log(c) for c in choices) / len(choices)

    def begin_step(self, progress: float) -> None:
        self.key_network.follow(self.encoder, self.heads)

    def forward(self, batch: Batch) -> Step:
        keys, ns = self.embed_keys(batch)  # n+1 times B×J×C, B×M×C; first, as in MoCo
        q = self.heads(self.encoder, self.heads.trunk(self.encoder)(batch.views["query"]))  # n+1 times B×C
        with torch.autocast(q[0].device.type, enabled=False):
            losses = space_losses(
                q,
                keys,
                self.queue.keys,
                tau=self.settings.temperature,
                equal=self.equal_by_chance(batch),
                ns=None if ns is None else centred(ns, self.settings.center, self.comm),
                alpha=self.negatives.weights,
                mode=self.negatives.mode,
            )
        self.queue.hold(torch.stack([k[:, 0] for k in keys], dim=1))  # B×(n+1)×C
        extra = dict(zip((f"loss_{name}" for name in self.heads.names), losses.detach()))
        return Step(losses.mean(), q[0].detach(), keys[0][:, 0], ns, extra if len(losses) > 1 else {})

    def equal_by_chance(self, batch: Batch) -> list[Tensor | None] | None:
        """With mask_equal, for each space B×(J−1): does that key share the query's parameter?"""
        if not self.settings.mask_equal:
            return None
        shared: Tensor = batch.facts["shared"]  # B×n×(n+1)
        own = [shared[:, i, self.key_columns(i + 1)[1:]] for i in range(len(self.leave_out))]
        return [None, *own]

    def key_roles(self) -> tuple[str, ...]:
        return ("key", *(f"key:{name}" for name in self.leave_out))

    @torch.no_grad()
    def embed_keys(self, batch: Batch) -> tuple[list[Tensor], Tensor | None]:
        """Keys in the spaces that need them (n+1 times B×J×C), and negatives in space 0 (B×M×C), of the momentum network.

        All keys pass at once in randomly composed groups, so none can be recognised by the statistics of its batch;
        negatives pass by themselves unless shared, as in MoCo.
        """
        images = [batch.views[role] for role in self.key_roles()]
        extra = self.made_of(batch, "query")  # B·m×3×H×W per kind
        network, b = self.key_network, len(images[0])
        groups = network.groups(b)
        trunk = network[1].trunk(network[0])  # type: ignore[operator]
        if self.settings.statistics == "shared":
            every = network.in_groups(trunk, torch.cat([*images, *extra]), groups * len(images))
            v, *v_extra = every.split([b * len(images), *map(len, extra)])
        else:
            v = network.in_groups(trunk, torch.cat(images), groups * len(images))
            v_extra = [network.in_groups(trunk, x, groups) for x in extra]
        keys = []
        for i in range(len(self.heads.names)):
            columns = self.key_columns(i)
            z = self.embed_in(i, v if len(columns) > 1 else v[:b], groups * len(columns))  # J·B×C
            keys.append(z.unflatten(0, (-1, b))[columns].transpose(0, 1))
        return keys, by_query([self.embed_in(0, x, groups) for x in v_extra], b)

    def embed_in(self, i: int, v: Tensor, groups: int) -> Tensor:
        """z_i of the momentum network from what its trunk gave."""
        encoder, heads = self.key_network
        stage = heads.stage(encoder, i)  # type: ignore[operator]
        features = v if stage is None else self.key_network.in_groups(stage, v, groups).mean(dim=(2, 3))
        return unit(heads.mlps[i](features))  # type: ignore[index,operator]
