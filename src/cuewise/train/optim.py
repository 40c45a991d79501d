"""Optimisers, weight-decay groups and learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.config import Optim
from cuewise.encoders.depth import depths
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.train.fused import SGD, Adam, AdamW, Uncompiled

BETAS = {"adam": (0.9, 0.999), "adamw": (0.9, 0.95)}


class LARS(Uncompiled, torch.optim.Optimizer):
    """Layer-wise adaptive rates: for tensors with more than one axis

    g ← g + wd·p;  g ← g · trust · ‖p‖ / ‖g‖ (unchanged if either norm is 0);  v ← μ v + g;  p ← p − lr·v.

    Biases and norms (one axis) have neither decay nor adaptation. You et al. 2017.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                if p.ndim > 1:
                    g = g.add(p, alpha=group["weight_decay"])
                    norm_p, norm_g = p.norm(), g.norm()
                    ratio = torch.where((norm_p > 0) & (norm_g > 0), group["trust"] * norm_p / norm_g, 1.0)
                    g = g * ratio
                v = self.state[p].setdefault("momentum", torch.zeros_like(p))
                v.mul_(group["momentum"]).add_(g)
                p.sub_(v * group["lr"])
        return loss


MILESTONES = (0.6, 0.8)  # of the schedule "step", as shares of training


class OptimizerGroup:
    """Optimisers that step together. The first follows the schedule (its groups are `param_groups`), the others do not."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.parts[0].param_groups  # type: ignore[no-any-return]

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(saved)


def build_optimizers(
    method: Method, config: Optim, batch_size: int, backbone: nn.Module | None = None
) -> list[torch.optim.Optimizer]:
    """The configured optimiser, and one for each part of the method that is trained apart."""
    apart = [(module, Optim(**settings)) for module, settings in method.apart().values()]
    own = {id(p) for module, _ in apart for p in module.parameters()}
    rest = nn.ParameterList(p for p in method.parameters() if id(p) not in own)
    others = [build_optimizer(module, settings, settings.reference_batch) for module, settings in apart]
    return [build_optimizer(rest, config, batch_size, backbone), *others]


def build_optimizer(
    module: nn.Module, config: Optim, batch_size: int, backbone: nn.Module | None = None
) -> torch.optim.Optimizer:
    """The configured optimiser over the trainable parameters, its lr scaled to the batch.

    backbone  the part of the module that brings weights: `layer_decay` and `head_warmup` act on it
    """
    lr = scaled_lr(config, batch_size)
    momentum = 0.9 if config.momentum is None else config.momentum
    every = config.name == "sgd" if config.decay_all is None else config.decay_all
    scales = layer_scales(backbone, config.layer_decay or 1.0) if backbone is not None else {}
    found: dict[tuple[bool, float, bool], list[Tensor]] = {}
    for p in module.parameters():
        if p.requires_grad:
            key = (not (p.ndim > 1 or every), scales.get(p, 1.0), p in scales)
            found.setdefault(key, []).append(p)
    groups: list[dict[str, Any]] = [
        {
            "params": found[key],
            "weight_decay": 0.0 if key[0] else config.weight_decay,
            "scale": key[1],
            "old": key[2],
        }
        for key in sorted(found)
    ]
    betas: Any = config.betas or BETAS.get(config.name)
    fused = all(p.device.type in ("cpu", "cuda") for g in groups for p in g["params"])
    if config.name == "sgd":
        return SGD(groups, lr=lr, momentum=momentum, fused=fused)
    if config.name == "adam":
        return Adam(groups, lr=lr, betas=betas, fused=fused)
    if config.name == "adamw":
        return AdamW(groups, lr=lr, betas=betas, fused=fused)
    if config.name == "lars":
        return LARS(groups, lr=lr, momentum=momentum)
    raise UserError(f"optim.name {config.name!r}: sgd, adam, adamw or lars")


def layer_scales(backbone: nn.Module, decay: float) -> dict[Tensor, float]:
    """Parameter → decay^(L + 1 − depth), for depths 0 … L + 1 (see `depths`)."""
    found, last = depths(backbone)
    return {p: decay ** (last - found[name]) for name, p in backbone.named_parameters()}


def set_rates(optimizer: torch.optim.Optimizer, config: Optim, lr: float, progress: float) -> None:
    """The rate of each group: the schedule's times its own; 0 for what brought weights while new heads warm up."""
    waiting = progress < (config.head_warmup or 0.0)
    for group in optimizer.param_groups:
        group["lr"] = 0.0 if waiting and group["old"] else lr * group["scale"]


def scaled_lr(config: Optim, batch_size: int) -> float:
    """lr · batch / reference batch."""
    assert config.lr is not None  # settled when the run was built
    return config.lr * batch_size / config.reference_batch


def lr_factor(config: Optim, step: int, steps_per_epoch: int, total: int) -> float:
    """What the base rate is multiplied by at a step: linear warm-up, then cosine to 0, or ×0.1 at each milestone."""
    warmup = config.warmup_epochs * steps_per_epoch + config.warmup_share * total
    if warmup >= total:
        warmup = total * 0.1  # a run shorter than its warm-up keeps the shape
    if step < warmup:
        return (step + 1) / warmup if warmup > 1 else 1.0
    progress = (step - warmup) / max(1, total - warmup)
    if config.schedule == "cosine":
        return (1 + math.cos(math.pi * progress)) / 2
    if config.schedule == "step":
        return 0.1 ** sum(step / total >= m for m in config.milestones or MILESTONES)
    return 1.0  # constant
