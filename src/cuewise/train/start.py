"""What a run starts from: a model with or without weights, and what that means for its rates."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from cuewise.config import Config, Optim
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.card import is_random
from cuewise.encoders.depth import freeze_below
from cuewise.encoders.load import load_whole
from cuewise.encoders.low_rank import add_low_rank
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.methods.method import SHORT, SMALL

LAYER_DECAY, HEAD_WARMUP = 0.8, 0.1  # where a model brings weights


def load_start(config: Config, *, typed: bool = True) -> Encoder:
    """The encoder of a configuration before training, with its classifier and its own input size where the method keeps
    them."""
    if config.method_class.keeps_classifier:
        encoder = load_whole(config.model, typed=typed)
        check_side(encoder, config.size)
    else:
        encoder = load_encoder(config.model, size=config.size, typed=typed)
    choose_layers(encoder, config)
    return encoder


def choose_layers(encoder: Encoder, config: Config) -> None:
    """What trains of the backbone: --layers, or low-rank updates of those."""
    backbone, arch = encoder.backbone, encoder.card.arch
    if config.low_rank is None:
        if config.layers != "all":
            freeze_below(backbone, config.layers, arch)
        return
    if config.low_rank < 1:
        raise UserError(f"--low-rank {config.low_rank}: must be 1 or more")
    if is_random(encoder.card.weights):
        raise UserError("--low-rank is for a model that brings weights: the frozen ones would be random")
    add_low_rank(backbone, config.low_rank, config.layers, arch)


def check_side(encoder: Encoder, size: int) -> None:
    """A model that is built for one input size is tuned at that size: another one would need other positions."""
    grid = getattr(getattr(encoder.backbone, "patch_embed", None), "grid_size", None)
    patch = getattr(getattr(encoder.backbone, "patch_embed", None), "patch_size", (0,))[0]
    if size < patch:
        raise UserError(
            f"--size {size}: smaller than a patch of {encoder.card.arch}, {patch} px; give {encoder.card.size}"
        )
    if grid is not None and size != encoder.card.size:
        raise UserError(
            f"--size {size}: {encoder.card.arch} is built for {encoder.card.size} px; leave out --size"
        )


def brought_weights(method: Method) -> nn.Module | None:
    """The backbone, where it does not start from random weights."""
    return None if is_random(method.encoder.card.weights) else method.encoder.backbone


def settle_rates(optim: Optim, method: Method, steps: int, batch_size: int) -> Optim:
    """`lr`, `layer_decay` and `head_warmup` as they will act; refused where they could not."""
    backbone = brought_weights(method)
    if optim.lr is None:
        short = steps < SHORT and batch_size <= SMALL and optim.name == method.optim["name"]
        own = method.optim["short_lr" if short and backbone is None else "lr"]
        optim = replace(optim, lr=own)
    if backbone is None:
        for name, off in (("layer_decay", 1.0), ("head_warmup", 0.0)):
            if getattr(optim, name) not in (None, off):
                raise UserError(
                    f"optim.{name} is for a model that brings weights: give --model MODEL:FILE, a run, or --pretrained"
                )
        return optim
    old = {id(p) for p in method.encoder.parameters()}
    heads = any(p.requires_grad and id(p) not in old for p in method.parameters())
    if optim.head_warmup and not heads:
        raise UserError(f"optim.head_warmup: {method.name} has no new heads to warm up")
    decay = LAYER_DECAY if optim.layer_decay is None else optim.layer_decay
    warmup = (HEAD_WARMUP if heads else 0.0) if optim.head_warmup is None else optim.head_warmup
    return replace(optim, layer_decay=decay, head_warmup=warmup)
