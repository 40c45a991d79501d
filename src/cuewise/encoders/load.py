"""MODEL → Encoder: a run folder, a file of weights, torchvision/x, timm/x, cuewise/x or package.module:factory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data.config import resolve_data_config
from torch import nn

from cuewise.architectures import registered
from cuewise.encoders.card import is_random, read_card, weights_of_file
from cuewise.encoders.constructor import parse_options
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.hf_models import empty_hf, give_text, load_hf
from cuewise.encoders.libraries import build, warn_if_small
from cuewise.encoders.modules import call_factory, encoder_of_module
from cuewise.encoders.open_clip_models import empty_open_clip, load_open_clip
from cuewise.encoders.spaces import in_space, read_heads
from cuewise.encoders.weights import (
    NoClassifier,
    backbone_in_checkpoint,
    load_into,
    read_weights,
    write_weights,
)
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.options import COUNT

SPEC = re.compile(
    r"^(?P<arch>(?:torchvision|timm|cuewise)/[^:?]+)(?:\?(?P<options>[^:]*))?(?::(?P<weights>.+))?$"
)
FACTORY = re.compile(r"^(?P<factory>[A-Za-z_][\w.]*:[A-Za-z_]\w*)(?::(?P<weights>.+))?$")
HUB = ("open_clip/", "hf:")
FORMS = (
    "a run folder, encoder.safetensors, torchvision/NAME, timm/NAME, cuewise/NAME, open_clip/NAME:FILE, hf:FOLDER or "
    "package.module:factory"
)


def load_encoder(
    spec: str | nn.Module, *, size: int | None = None, head: bool = False, typed: bool = True
) -> Encoder:
    """The encoder that MODEL names, in evaluation mode and float32; MODEL#SPACE is one of its embedding spaces.

    size   input side for architectures that do not say; weights from disk bring their own
           (1 or more; where it is far below the model's own, a warning says so)
    head   keep the classifier (`encoder.logits`) where the model has one
    typed  False: `spec` was read from a file and not typed by the user: no factory is imported, nothing is downloaded
    """
    COUNT.check(size, "--size")
    if isinstance(spec, nn.Module):
        _warn_of_module(spec, type(spec).__name__, size)
        return encoder_of_module(spec, type(spec).__name__, size=size, head=head)
    if spec.startswith(HUB):
        if not typed:
            raise UserError(f"{spec} was read from a file and is not loaded: type it as MODEL yourself")
        found = load_hf(spec, size, head) if spec.startswith("hf:") else load_open_clip(spec, size)
        if not is_random(found.card.weights):
            warn_if_small(spec, _side_in_hub(found, spec), size)
        return found
    path = Path(spec)
    if "#" in spec and not path.exists():
        base, _, space = spec.rpartition("#")
        return _in_space(base, space, size)
    if path.is_dir():
        return _from_file(path / "encoder.safetensors", size, head=head)
    if match := SPEC.match(spec):
        return _from_library(match, spec, size, head, typed)
    if path.suffix == ".ckpt":
        return _from_checkpoint(path, size)
    if path.suffix in (".safetensors", ".json") and (path.exists() or ":" not in spec):
        return _from_file(path.with_suffix(".safetensors"), size, head=head)
    if match := FACTORY.match(spec):
        if not typed:
            raise UserError(f"{spec} was read from a file and is not imported: type it as MODEL yourself")
        return _from_factory(match, size, head)
    raise no_model(spec)


def no_model(spec: str) -> UserError:
    """The error for a MODEL that is none; it says how a bare name of a library or a bare file of weights is written."""
    name, _, weights = spec.partition(":")
    libraries = [library for library in ("timm", "torchvision") if name in registered(library)]
    if libraries:
        meant = " or ".join(f"{library}/{name}{f':{weights}' if weights else ''}" for library in libraries)
        return UserError(f"no model {spec!r}: did you mean {meant}?")
    if Path(spec).is_file():
        return UserError(
            f"{spec} does not say which architecture its weights are of: write timm/NAME:{spec}, torchvision/NAME:{spec} "
            f"or package.module:factory:{spec}"
        )
    return UserError(f"no model {spec!r}: give {FORMS}")


def _from_library(match: re.Match[str], spec: str, size: int | None, head: bool, typed: bool) -> Encoder:
    arch, options = match["arch"], parse_options(match["options"])
    asked = options.pop("pretrained", False)  # 1, or the name of one of several sets of weights
    pretrained = (asked if isinstance(asked, str) else bool(asked)) if typed else False
    if match["weights"] and pretrained:
        raise UserError(f"{spec} asks for a file and for pretrained weights: give one of them")
    if arch.startswith("timm/") and "." in arch and not match["weights"] and not pretrained and typed:
        raise UserError(
            f"{arch} names pretrained weights: add --pretrained to take them from timm (its cache, or a download), "
            f"or a file as {arch}:FILE; without the tag the weights are random"
        )
    file = Path(match["weights"]) if match["weights"] else None
    weights = read_weights(file) if file else None
    words = "&".join(f"{k}={v}" for k, v in options.items())
    full = arch + (f"?{words}" if words else "")
    encoder = build(
        arch,
        options,
        size=size,
        weights=weights,
        head=head,
        spec=full,
        pretrained=pretrained,
        source=match["weights"],
    )
    if file:
        encoder.card = replace(encoder.card, weights=weights_of_file(file))
    return encoder.eval()


def _from_factory(match: re.Match[str], size: int | None, head: bool) -> Encoder:
    """The user's own code, with the weights of an encoder that cuewise trained where MODEL names them."""
    factory = match["factory"]
    if not match["weights"]:
        return encoder_of_module(call_factory(factory), factory, size=size, head=head)
    path = Path(match["weights"])
    file = path / "encoder.safetensors" if path.is_dir() else path
    if file.with_suffix(".json").is_file():
        return _from_file(file, size, typed=factory, head=head)
    weights = read_weights(file)
    module = call_factory(factory)
    _warn_of_module(module, factory, size)
    encoder = encoder_of_module(module, factory, size=size, head=head)
    load_into(encoder, weights, str(file))
    encoder.card = replace(encoder.card, weights=weights_of_file(file))
    return encoder


def _warn_of_module(module: nn.Module, name: str, size: int | None) -> None:
    """Of a module that says as timm's models do which input it was made for."""
    if size is not None and isinstance(getattr(module, "pretrained_cfg", None), dict):
        warn_if_small(name, resolve_data_config({}, model=module)["input_size"][-1], size)


def _side_in_hub(encoder: Encoder, spec: str) -> int:
    """The side in the configuration of transformers or open_clip; 0 where it is not stated."""
    if spec.startswith("hf:"):
        config = encoder.card.config.get("model", {})
        side = (config.get("vision_config") or config).get("image_size")
    else:
        import open_clip

        name = spec.removeprefix("open_clip/").partition(":")[0]
        side = ((open_clip.get_model_config(name) or {}).get("vision_cfg") or {}).get("image_size")
    side = side[0] if isinstance(side, list | tuple) else side
    return side if isinstance(side, int) else 0


def _from_file(file: Path, size: int | None, typed: str | None = None, head: bool = False) -> Encoder:
    """encoder.safetensors with its card, and with the classifier that it holds where that is wanted; `typed` is the
    factory that the user named, if any."""
    card_file = file.with_suffix(".json")
    for needed in (file, card_file):
        if not needed.exists():
            if (file.parent / "config.yaml").exists():
                raise UserError(f"{needed} is missing: train first, or give --resume")
            if needed is card_file and file.name != "encoder.safetensors":
                raise no_model(str(file))
            raise UserError(f"{needed} is missing: MODEL is {FORMS}")
    card, weights = read_card(card_file), read_weights(file)
    numbers = sum(v.numel() for v in weights.values())
    encoder = _empty(card, size, typed, file, numbers, int(card.get("outputs", 0)) if head else 0)
    load_into(encoder, weights, str(file))
    give_text(encoder)
    origin = weights_of_file(file)
    if "step" in card:
        before = card.get("weights")
        start = {"from": before["from"]} if isinstance(before, dict) and "from" in before else {}
        origin = {"run": str(file.parent), "step": card["step"], **start, "sha256": origin["sha256"]}
    return _with_card(
        encoder, card, size, origin, str(file.parent if file.name == "encoder.safetensors" else file)
    )


def _from_checkpoint(file: Path, size: int | None) -> Encoder:
    """RUN/checkpoints/last.ckpt: the encoder as it is in a checkpoint, with the card of its run."""
    weights, step = backbone_in_checkpoint(file)
    folder = file.resolve().parent.parent
    if not (folder / "encoder.json").is_file():
        raise UserError(
            f"{folder / 'encoder.json'} is missing: it says which model the checkpoint {file} is of"
        )
    card = read_card(folder / "encoder.json")
    encoder = _empty(card, size, None, file, sum(v.numel() for v in weights.values()))
    load_into(encoder, weights, str(file))
    origin = {"run": str(file.parent.parent), "step": step, "sha256": weights_of_file(file)["sha256"]}
    return _with_card(encoder, card, size, origin, str(file))


def _empty(
    card: dict[str, Any], size: int | None, typed: str | None, file: Path, numbers: int, outputs: int = 0
) -> Encoder:
    """The architecture of a card, before its weights, so many numbers, are loaded; with a classifier of that many outputs."""
    arch, side = card["arch"], card["size"] if size is None else size
    if match := SPEC.match(arch):
        options = parse_options(match["options"])
        pool = card.get("pool")
        return build(
            match["arch"], options, size=side, spec=arch, pool=pool, head=outputs > 0, outputs=outputs
        ).eval()
    if arch.startswith("open_clip/"):
        return empty_open_clip(arch, side)
    if arch.startswith("hf:"):
        return empty_hf(card, side, outputs > 0, numbers)
    if typed == arch and FACTORY.match(arch):
        return encoder_of_module(call_factory(arch), arch, size=side, head=outputs > 0)
    if FACTORY.match(arch):
        raise UserError(
            f"{file} is of the model {arch}, whose code is not imported just because a file names it: type {arch}:{file}"
        )
    raise UserError(f"{file}: its card names no model that can be built ({arch[:60]!r})")


def _with_card(
    encoder: Encoder, card: dict[str, Any], size: int | None, weights: dict[str, Any], name: str
) -> Encoder:
    """The card that lies beside the weights; `name`: what a warning calls the model."""
    encoder.card = replace(
        encoder.card,
        arch=card["arch"],
        size=card["size"] if size is None else size,
        mean=tuple(card["mean"]),
        std=tuple(card["std"]),
        interpolation=card.get("interpolation", "bilinear"),
        method=card.get("method"),
        cues=card.get("cues", {}),
        weights=weights,
    )
    if not is_random(weights):
        warn_if_small(name, card["size"], size)
    return encoder


def _in_space(spec: str, space: str, size: int | None) -> Encoder:
    encoder, path = load_encoder(spec, size=size), Path(spec)
    folder = path if path.is_dir() else path.parent
    heads = read_heads(encoder, folder) if path.exists() else None
    return in_space(encoder, heads, space, spec)


def with_space(spec: str, space: str | None) -> str:
    """MODEL and --space as one specification."""
    return spec if space is None else f"{spec}#{space}"


def with_pretrained(spec: str, pretrained: bool) -> str:
    """MODEL and --pretrained as one specification."""
    if not pretrained:
        return spec
    match = SPEC.match(spec)
    if match is None or match["weights"] or match["arch"].startswith("cuewise/"):
        raise UserError(
            f"--pretrained belongs to torchvision/NAME and timm/NAME without a file, not to {spec}"
        )
    return f"{spec}{'&' if match['options'] else '?'}pretrained=1"


def pooled_over_patches(spec: str) -> str:
    """MODEL with its patch tokens averaged after the last norm, where it is a vision transformer of timm and does not say.

    timm pools by the class token, which a method that never reads it would leave untrained; with `fc_norm=False` the last
    norm keeps its place and its name.
    """
    match = SPEC.match(spec)
    if match is None or not match["arch"].startswith("timm/") or "global_pool" in (match["options"] or ""):
        return spec
    name = match["arch"].removeprefix("timm/").partition(".")[0]
    if not timm.models.is_model_in_modules(name, ["vision_transformer"]):
        return spec
    options = "&".join(filter(None, [match["options"], "global_pool=avg", "fc_norm=False"]))
    return f"{match['arch']}?{options}" + (f":{match['weights']}" if match["weights"] else "")


def parameters(encoder: Encoder) -> int:
    """How many numbers the backbone holds."""
    return sum(p.numel() for p in encoder.backbone.parameters())


def save_encoder(encoder: Encoder, file: Path, **card: Any) -> None:
    """Write FILE.safetensors (the backbone, and the classifier where one is kept, in its library's key names) and FILE.json
    beside it, atomically.

    With a `step` among the entries of the card, the weights are those of a run at that step.
    """
    content = {**encoder.card.as_dict(), **card, "dim": encoder.dim, "parameters": parameters(encoder)}
    if encoder.head is not None:
        content |= {"classifier": encoder.head_name, "outputs": outputs_of(encoder)}
    if "step" in card:
        start = encoder.card.weights
        content["weights"] = {"run": file.parent.name, "step": card["step"]}
        content["weights"] |= {"from": start} if isinstance(start, dict) else {}
    write_weights(encoder.whole_state(), file)
    write_json(file.with_suffix(".json"), content)


def load_whole(spec: str | nn.Module, *, size: int | None = None, typed: bool = True) -> Encoder:
    """The model with its classifier, where it has a trained one; one that does not fit is an error."""
    match = SPEC.match(spec) if isinstance(spec, str) else None
    if match is None:
        return load_encoder(spec, size=size, head=True, typed=typed)
    trained = match["weights"] or (typed and "pretrained" in (match["options"] or ""))
    if not trained or match["arch"].startswith("cuewise/"):
        return load_encoder(spec, size=size, typed=typed)
    try:
        return load_encoder(spec, size=size, head=True, typed=typed)
    except NoClassifier:
        return load_encoder(spec, size=size, typed=typed)


@torch.no_grad()
def outputs_of(encoder: Encoder) -> int:
    """How many classes the classifier distinguishes."""
    assert encoder.head is not None
    weight = next(encoder.parameters(), torch.zeros(()))
    x = torch.zeros(1, encoder.dim, device=weight.device, dtype=weight.dtype)
    return int(encoder.head(x).flatten(1).shape[1])


def as_torch_device(name: str) -> torch.device:
    """ "auto" is the best device there is."""
    if name != "auto":
        try:
            return torch.device(name)
        except RuntimeError:
            raise UserError(f"--device {name}: auto, cpu, cuda, cuda:1 or mps") from None
    return torch.device(
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
