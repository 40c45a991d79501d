"""AdamW for a vision transformer that is fine-tuned: the earlier a layer, the smaller its rate."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cuewise.encoders import Encoder
from cuewise.encoders.tokens import transformer


def depth_of(name: str, blocks: int) -> int:
    """0 for patches, positions and class token, i + 1 for block i, blocks + 1 for what comes after."""
    if name.startswith("blocks."):
        return int(name.split(".")[1]) + 1
    first = ("patch_embed", "pos_embed", "cls_token", "reg_token", "norm_pre")
    return 0 if name.split(".")[0] in first else blocks + 1


def layer_decayed(
    encoder: Encoder, head: nn.Module, lr: float, decay: float, weight_decay: float
) -> torch.optim.AdamW:
    """The rate of depth d of L + 1 is lr · decay^(L + 1 − d); biases and norms have no weight decay.

    Clark et al. 2020 (ELECTRA); He et al. 2022 (MAE), appendix A.1.
    """
    net = transformer(encoder.backbone, encoder.card.arch)
    last = len(net.blocks) + 1
    groups: dict[tuple[int, bool], dict[str, Any]] = {}
    named = [(depth_of(name, len(net.blocks)), p) for name, p in net.named_parameters()]
    for depth, p in [*named, *((last, p) for p in head.parameters())]:
        if not p.requires_grad:
            continue
        scale, decayed = decay ** (last - depth), weight_decay * (p.ndim > 1)
        settings = {"params": [], "scale": scale, "lr": lr * scale, "weight_decay": decayed}
        groups.setdefault((depth, p.ndim > 1), settings)["params"].append(p)
    return torch.optim.AdamW(list(groups.values()), betas=(0.9, 0.999))
