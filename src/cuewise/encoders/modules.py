"""Any nn.Module as an encoder: its classifier is found and taken off, its own module stays unchanged."""

from __future__ import annotations

import copy
import sys
from typing import Any

from timm.data.config import resolve_data_config
from torch import Tensor, nn

from cuewise.encoders.card import IMAGENET_MEAN, IMAGENET_STD, Card
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.pooling import pool_of
from cuewise.encoders.trial import trial_pass
from cuewise.errors import UserError
from cuewise.registry import import_typed

CLASSIFIERS = ("fc", "classifier", "head", "heads", "logits", "last_linear", "linear")  # usual names
IMAGENET = 1000


def encoder_of_module(
    module: nn.Module, arch: str, *, size: int | None = None, head: bool = False
) -> Encoder:
    """Features before the classifier, where the module ends in one; with `head` it is kept as `encoder.head`."""
    card = _card(module, arch, size)
    if hasattr(module, "forward_features") and hasattr(module, "forward_head"):  # as timm's models
        classifier = module.get_classifier() if hasattr(module, "get_classifier") else None  # type: ignore[operator]
        whole = isinstance(classifier, nn.Module) and not isinstance(classifier, nn.Identity)
        return Encoder(module, card, classifier if head and whole else None).eval()
    place = last_linear(module, card.size)
    if place is None:
        return Encoder(module, card).eval()
    layer = module.get_submodule(place)
    assert isinstance(layer, nn.Linear)
    if not _is_classifier(place, layer):
        print(
            f"{arch} returns its last linear layer {place!r} ({layer.out_features} numbers), which is taken for features; "
            f"if it is a classifier, return what is before it",
            file=sys.stderr,
        )
        return Encoder(module, card).eval()
    print(
        f"{arch}: features are the {layer.in_features} inputs of its classifier {place!r} "
        f"({layer.out_features} outputs)",
        file=sys.stderr,
    )
    return Encoder(without(module, place), card, layer if head else None, place if head else "").eval()


def _card(module: nn.Module, arch: str, size: int | None) -> Card:
    mean, std, side, interpolation = IMAGENET_MEAN, IMAGENET_STD, 224, "bilinear"
    if isinstance(getattr(module, "pretrained_cfg", None), dict):  # timm's models know
        config: dict[str, Any] = resolve_data_config({}, model=module)
        mean, std = tuple(config["mean"]), tuple(config["std"])
        side, interpolation = config["input_size"][-1], config["interpolation"]
    return Card(arch, size or side, mean, std, interpolation, pool_of(module), weights={"code": arch})


def _is_classifier(place: str, layer: nn.Linear) -> bool:
    return layer.out_features == IMAGENET or any(part in CLASSIFIERS for part in place.split("."))


def last_linear(module: nn.Module, size: int) -> str | None:
    """Name of the linear layer whose output the module returns unchanged."""
    outputs: list[tuple[str, Tensor]] = []
    layers = [(n, m) for n, m in module.named_modules() if n and isinstance(m, nn.Linear)]
    out = trial_pass(module, size, layers, lambda name, given: outputs.append((name, given)))
    return next((name for name, given in reversed(outputs) if given is out), None)


def without(module: nn.Module, place: str) -> nn.Module:
    """The module with an identity at `place`; only modules on the way there are copied, weights are shared."""
    first, _, rest = place.partition(".")
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    child = module._modules[first]
    assert child is not None
    twin._modules[first] = without(child, rest) if rest else nn.Identity()
    return twin


def call_factory(spec: str) -> nn.Module:
    """What `package.module:factory` gives: a module, or a function or class that makes one without arguments."""
    target = import_typed(spec, "model")
    try:
        model = target() if callable(target) and not isinstance(target, nn.Module) else target
    except Exception as error:  # the user's own code: its traceback is shown with --debug
        raise UserError(f"{spec} failed: {type(error).__name__}: {error} (--debug shows where)") from error
    if not isinstance(model, nn.Module):
        raise UserError(f"{spec} returned {type(model).__name__}, not an nn.Module")
    return model
