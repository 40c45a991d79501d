"""Backbones by the name that their library gives them: torchvision/NAME, timm/NAME, cuewise/NAME."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import timm
import torchvision
from timm.data.config import resolve_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from cuewise.encoders.card import RANDOM, Card, Weights
from cuewise.encoders.constructor import check_options, first_line
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.lab import SPACES, LabPair
from cuewise.encoders.pooling import pool_of
from cuewise.encoders.pretrained import fetching, torchvision_weights
from cuewise.encoders.resnet_tiny import ResNetTiny
from cuewise.encoders.resnet_variants import narrow, set_stem
from cuewise.encoders.unet import UNet
from cuewise.encoders.vit_tiny import ViTTiny
from cuewise.encoders.weights import load_into
from cuewise.encoders.wide_resnet import WideResNet
from cuewise.errors import UserError, nearest, unknown

LIBRARIES = ("torchvision", "timm", "cuewise")
OWN = {
    "resnet-tiny": ("width", "depth", "norm"),
    "vit-tiny": ("patch", "width", "depth"),
    "lab": ("of", "space"),
    "wrn40-2": ("dropout",),
    "unet": ("width", "depth", "residual"),
}
Pretrained = bool | str  # True, or the name of one of several sets of weights


class ModelRequest(NamedTuple):
    """What a library is asked for; 0 classes is a model without classifier, −1 the weights' own."""

    name: str
    options: dict[str, Any]
    classes: int
    size: int | None
    pretrained: Pretrained = False


class Built(NamedTuple):
    """A backbone without its classifier, the classifier, and what its library says about it."""

    backbone: nn.Module
    classifier: nn.Module | None
    card: Card
    place: str = ""  # of the classifier in the whole model


def build(
    arch: str,
    options: dict[str, Any] | None = None,
    *,
    size: int | None = None,
    weights: dict[str, Tensor] | None = None,
    head: bool = False,
    outputs: int = 0,
    spec: str | None = None,
    pool: str | None = None,
    pretrained: Pretrained = False,
    source: str | None = None,
) -> Encoder:
    """A backbone by library name, with or without weights.

    options     constructor options of the library
    size        input side; models that are built for one size are built for this one
    outputs     of the classifier that is kept with `head` [as in the weights, else 1000]
    pool        how the weights were pooled when they were trained, where that is known
    pretrained  ask the library for its weights (its cache, or a download)
    source      what an error calls the weights, e.g. their file
    """
    library, _, name = arch.partition("/")
    full = spec.split(":")[0] if spec else arch
    classes = _classes_in(weights) if head and weights else 1000 if head and library != "cuewise" else 0
    classes = outputs or classes
    if library in ("torchvision", "timm"):
        check_options(library, name, options or {})
    maker = {"torchvision": _torchvision, "timm": _timm, "cuewise": _own}[library]
    wanted = ModelRequest(name, dict(options or {}), -1 if head and pretrained else classes, size, pretrained)
    built = maker(wanted)
    if pool and library == "timm" and pool_of(built.backbone) != pool:
        built = maker(wanted._replace(options={**(options or {}), "global_pool": pool}))
    own = built.card.size
    card = replace(
        built.card, arch=full, size=size if size is not None else own, pool=pool_of(built.backbone)
    )
    kept = head and built.classifier is not None
    encoder = Encoder(built.backbone, card, built.classifier if kept else None, built.place if kept else "")
    if weights is not None:
        load_into(encoder, weights, source or spec or arch)
    if weights is not None or pretrained:
        warn_if_small(full, own, size)
    return encoder


_said: set[tuple[str, int]] = set()  # an audit loads a model several times


def warn_if_small(name: str, own: int, size: int | None) -> None:
    """Say on the terminal, once for each model, that its input is far smaller than the one it was made for."""
    if size is None or 4 * size >= own or (name, size) in _said:
        return
    _said.add((name, size))
    print(
        f"WARNING: {name} was made for {own} pixels; at {size} its scores say little. Leave out --size, or give "
        f"{math.ceil(own / 4)} or more",
        file=sys.stderr,
        flush=True,
    )


def _torchvision(wanted: ModelRequest) -> Built:
    name, options = wanted.name, dict(wanted.options)
    names = torchvision.models.list_models(module=torchvision.models)
    if name not in names:
        raise _no_model("torchvision", name, names)
    card = Card(f"torchvision/{name}", 224, weights=RANDOM)
    stem, width = options.pop("stem", None), options.pop("width", None)
    state: dict[str, Tensor] | None = None
    if wanted.pretrained:
        if wanted.options:
            raise UserError(
                f"torchvision's weights of {name} fit {name} as it is: leave out ?{next(iter(wanted.options))}="
            )
        state, card = torchvision_weights(name, wanted.pretrained, card)
    elif name.startswith("vit_"):  # positions for one input size
        card = replace(
            card, size=options.setdefault("image_size", card.size if wanted.size is None else wanted.size)
        )
    classes = wanted.classes if wanted.classes > 0 else 1000
    if width is not None:
        model = _construct(card.arch, lambda: narrow(name, width, classes, options))
    else:
        get_model = torchvision.models.get_model
        model = _construct(card.arch, lambda: get_model(name, weights=None, num_classes=classes, **options))
    if stem is not None:
        set_stem(model, name, stem)
    if hasattr(model, "aux_logits"):  # Inception and GoogLeNet return extra heads in training mode
        model.aux_logits = False
    if state is not None:
        model.load_state_dict({k: v for k, v in state.items() if k in model.state_dict()})
    linear = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    where, classifier = linear[-1]
    parent, _, leaf = where.rpartition(".")
    setattr(model.get_submodule(parent), leaf, nn.Identity())
    return Built(model, classifier, card, where)


def _timm(wanted: ModelRequest) -> Built:
    name, options = wanted.name, dict(wanted.options)
    plain, _, tag = name.partition(".")
    if not timm.is_model(plain):
        raise _no_model("timm", plain, timm.list_models())
    arch = f"timm/{name}"
    known: Any = _construct(arch, lambda: get_pretrained_cfg(name, allow_unregistered=not tag))
    fixed = known is not None and known.fixed_input_size
    own = options.get("img_size")  # what it is made for, whatever size is asked for
    if wanted.size is not None and fixed and wanted.size != known.input_size[-1]:
        options.setdefault("img_size", wanted.size)
    if wanted.classes >= 0:
        options["num_classes"] = wanted.classes
    weights: Weights = RANDOM
    if wanted.pretrained:
        if wanted.pretrained is not True:
            raise UserError(
                f"timm's weights are named by a tag: timm/{plain}.{wanted.pretrained}?pretrained=1"
            )
        with fetching(arch, "timm"):
            model: Any = timm.create_model(name, pretrained=True, **options)
        weights = {"pretrained": f"timm/{plain}.{model.pretrained_cfg['tag']}"}
    else:
        model = _construct(arch, lambda: timm.create_model(name, pretrained=False, **options))
    config = resolve_data_config({}, model=model)
    side = config["input_size"][-1] if own is None else own
    mean, std = tuple(config["mean"]), tuple(config["std"])
    card = Card(arch, side, mean, std, config["interpolation"], weights=weights)
    classifier = model.get_classifier() if wanted.classes else None
    place = next((n for n, m in model.named_modules() if m is classifier), "")
    if classifier is not None:
        model.reset_classifier(0)
    if not isinstance(classifier, nn.Module):  # two of them, of a distilled model
        classifier = None
    return Built(model, classifier, card, place)


def _own(wanted: ModelRequest) -> Built:
    name, options = wanted.name, dict(wanted.options)
    if name not in OWN:
        raise unknown("cuewise has no model", name, OWN)
    if wanted.pretrained:
        raise UserError(f"cuewise/{name} has no published weights: train it, or give a file as MODEL:FILE")
    if name == "lab":
        return _lab(options, wanted.size)
    for option in options:
        if option not in OWN[name]:
            raise unknown(f"cuewise/{name} has no option", option, OWN[name])
    side = 32 if wanted.size is None else wanted.size
    card = Card(f"cuewise/{name}", side, weights=RANDOM)
    if name == "vit-tiny":
        return Built(_construct(card.arch, lambda: ViTTiny(side, **options)), None, card)
    if name in ("wrn40-2", "unet"):
        half = (0.5, 0.5, 0.5)  # wrn40-2 as it was published; a generator's images are in −1…1
        maker = (lambda: WideResNet(**options)) if name == "wrn40-2" else lambda: UNet(side, **options)
        return Built(_construct(card.arch, maker), None, replace(card, mean=half, std=half))
    return Built(_construct(card.arch, lambda: ResNetTiny(**options)), None, card)


def _lab(options: dict[str, Any], size: int | None) -> Built:
    """cuewise/lab?of=MODEL&space=ycbcr&…: two of MODEL, of lightness and of colours; other options are the model's."""
    of = str(options.pop("of", ""))
    if of.partition("/")[0] not in LIBRARIES:
        raise UserError("cuewise/lab needs a model: cuewise/lab?of=torchvision/resnet50")
    space = str(options.pop("space", "lab"))
    if space not in SPACES:
        raise unknown("cuewise/lab has no space", space, SPACES)
    L, ab = (build(of, options, size=size) for _ in range(2))
    pair = LabPair(L.backbone, ab.backbone, L.card.mean, L.card.std, space)
    return Built(pair, None, replace(L.card, arch="cuewise/lab"))


def _no_model(library: str, name: str, names: list[str]) -> UserError:
    near = nearest(name, names)
    hint = f"did you mean {library}/{near}? " if near else ""
    return UserError(f"{library} has no model {name!r}; {hint}see `cuewise list models`")


def _construct(arch: str, maker: Callable[[], Any]) -> Any:
    """What the library builds; an option that this model does not take is one line."""
    try:
        return maker()
    except (TypeError, ValueError, AssertionError, RuntimeError, KeyError, NotImplementedError) as error:
        raise UserError(f"{arch} cannot be built like that: {first_line(error)}") from error


def _classes_in(weights: dict[str, Tensor]) -> int:
    """Rows of the last 2-D weight: the classifier's, in every library here."""
    rows = [len(v) for k, v in weights.items() if k.endswith("weight") and v.ndim == 2]
    return rows[-1] if rows else 1000
