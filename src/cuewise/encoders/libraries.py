"""Backbones by the name that their library gives them: torchvision/NAME, timm/NAME, cuewise/NAME."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import timm
import torchvision
from timm.data.config import resolve_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from cuewise.encoders.encoder import Card, Encoder
from cuewise.encoders.lab import LabPair
from cuewise.encoders.pooling import pool_of
from cuewise.encoders.resnet_tiny import ResNetTiny
from cuewise.encoders.vit_tiny import ViTTiny
from cuewise.encoders.weights import load_into
from cuewise.errors import UserError

LIBRARIES = ("torchvision", "timm", "cuewise")
OWN = {
    "resnet-tiny": ("width", "depth", "norm"),
    "vit-tiny": ("patch", "width", "depth"),
    "lab": ("of",),
}


class Built(NamedTuple):
    """A backbone without its classifier, the classifier, and what its library says about it."""

    backbone: nn.Module
    classifier: nn.Module | None
    card: Card


def build(
    arch: str,
    options: dict[str, Any] | None = None,
    *,
    size: int | None = None,
    weights: dict[str, Tensor] | None = None,
    head: bool = False,
    spec: str | None = None,
    pool: str | None = None,
) -> Encoder:
    """A backbone by library name, with or without weights.

    options  constructor options of the library
    size     input side; models that are built for one size are built for this one
    pool     how the weights were pooled when they were trained, where that is known
    """
    library, _, name = arch.partition("/")
    full = spec.split(":")[0] if spec else arch
    classes = _classes_in(weights) if head and weights else 1000 if head and library != "cuewise" else 0
    maker = {"torchvision": _torchvision, "timm": _timm, "cuewise": _own}[library]
    built = maker(name, dict(options or {}), classes, size)
    if pool and library == "timm" and pool_of(built.backbone) != pool:
        built = maker(name, {**(options or {}), "global_pool": pool}, classes, size)
    card = replace(built.card, arch=full, size=size or built.card.size, pool=pool_of(built.backbone))
    encoder = Encoder(built.backbone, card, built.classifier if head else None)
    if weights is not None:
        load_into(encoder, weights, spec or arch)
    return encoder


def _torchvision(name: str, options: dict[str, Any], classes: int, size: int | None) -> Built:
    names = torchvision.models.list_models(module=torchvision.models)
    if name not in names:
        raise UserError(f"torchvision has no model {name!r}{nearest(name, names)}; see `cuewise list models`")
    side = 224
    if name.startswith("vit_"):  # positions for one input size
        side = options.setdefault("image_size", size or side)
    model = torchvision.models.get_model(name, weights=None, num_classes=classes or 1000, **options)
    if hasattr(model, "aux_logits"):  # Inception and GoogLeNet return extra heads in training mode
        model.aux_logits = False
    linear = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    where, classifier = linear[-1]
    parent, _, leaf = where.rpartition(".")
    setattr(model.get_submodule(parent), leaf, nn.Identity())
    return Built(model, classifier, Card(f"torchvision/{name}", side))


def _timm(name: str, options: dict[str, Any], classes: int, size: int | None) -> Built:
    if not timm.is_model(name.split(".")[0]):
        raise UserError(
            f"timm has no model {name!r}{nearest(name, timm.list_models())}; see `cuewise list models`"
        )
    known: Any = get_pretrained_cfg(name, allow_unregistered=True)
    if size is not None and known is not None and known.fixed_input_size and size != known.input_size[-1]:
        options.setdefault("img_size", size)
    model: Any = timm.create_model(name, pretrained=False, num_classes=classes, **options)
    config = resolve_data_config({}, model=model)
    side = options.get("img_size", config["input_size"][-1])
    card = Card(f"timm/{name}", side, tuple(config["mean"]), tuple(config["std"]), config["interpolation"])
    classifier = model.get_classifier() if classes else None
    if classes:
        model.reset_classifier(0)
    return Built(model, classifier, card)


def _own(name: str, options: dict[str, Any], classes: int, size: int | None) -> Built:
    if name not in OWN:
        raise UserError(f"no model cuewise/{name}: there are {', '.join(f'cuewise/{n}' for n in OWN)}")
    if name == "lab":
        return _lab(options, size)
    unknown = set(options) - set(OWN[name])
    if unknown:
        raise UserError(
            f"cuewise/{name} has no option {sorted(unknown)[0]!r}: there are {', '.join(OWN[name])}"
        )
    if name == "vit-tiny":
        side = size or 32
        return Built(ViTTiny(side, **options), None, Card("cuewise/vit-tiny", side))
    return Built(ResNetTiny(**options), None, Card("cuewise/resnet-tiny", 32))


def _lab(options: dict[str, Any], size: int | None) -> Built:
    """cuewise/lab?of=MODEL&…: two of MODEL, of lightness and of colours; the other options are the model's."""
    of = str(options.pop("of", ""))
    if of.partition("/")[0] not in LIBRARIES:
        raise UserError("cuewise/lab needs a model: cuewise/lab?of=torchvision/resnet50")
    L, ab = (build(of, options, size=size) for _ in range(2))
    pair = LabPair(L.backbone, ab.backbone, L.card.mean, L.card.std)
    return Built(pair, None, replace(L.card, arch="cuewise/lab"))


def _classes_in(weights: dict[str, Tensor]) -> int:
    """Rows of the last 2-D weight: the classifier's, in every library here."""
    rows = [len(v) for k, v in weights.items() if k.endswith("weight") and v.ndim == 2]
    return rows[-1] if rows else 1000


def nearest(name: str, names: Iterable[str]) -> str:
    """Names that are close to a mistyped one, as part of a message."""
    close = difflib.get_close_matches(name, list(names), n=3)
    return f" (close: {', '.join(close)})" if close else ""
