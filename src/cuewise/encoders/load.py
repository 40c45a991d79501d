"""MODEL → Encoder: a run folder, a file of weights, torchvision/x, timm/x, cuewise/x or package.module:factory."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from cuewise.encoders.encoder import Card, Encoder
from cuewise.encoders.libraries import build
from cuewise.encoders.pooling import pool_of
from cuewise.encoders.spaces import in_space, read_heads
from cuewise.encoders.weights import load_into, read_weights, write_weights
from cuewise.errors import UserError
from cuewise.files import aside

SPEC = re.compile(
    r"^(?P<arch>(?:torchvision|timm|cuewise)/[^:?]+)(?:\?(?P<options>[^:]*))?(?::(?P<weights>.+))?$"
)
FORMS = (
    "a run folder, encoder.safetensors, torchvision/NAME, timm/NAME, cuewise/NAME or package.module:factory"
)


def load_encoder(spec: str | nn.Module, *, size: int | None = None, head: bool = False) -> Encoder:
    """The encoder that MODEL names, in evaluation mode and float32; MODEL#SPACE is one of its embedding spaces.

    size  input side for architectures that do not say; weights from disk bring their own
    head  keep the classifier (`encoder.logits`) where the model has one
    """
    if isinstance(spec, nn.Module):
        return Encoder(spec, Card(type(spec).__name__, size or 224, pool=pool_of(spec))).eval()
    path = Path(spec)
    if "#" in spec and not path.exists():
        base, _, space = spec.rpartition("#")
        return _in_space(base, space, size)
    if path.is_dir():
        return _from_file(path / "encoder.safetensors", size)
    if path.suffix in (".safetensors", ".json") and not SPEC.match(spec):
        return _from_file(path.with_suffix(".safetensors"), size)
    match = SPEC.match(spec)
    if match:
        options = parse_options(match["options"])
        weights = read_weights(Path(match["weights"])) if match["weights"] else None
        return build(match["arch"], options, size=size, weights=weights, head=head, spec=spec).eval()
    if re.match(r"^[\w.]+:[\w.]+$", spec):
        return Encoder(_call_factory(spec), Card(spec, size or 224)).eval()
    raise UserError(f"no model {spec!r}: give {FORMS}")


def _in_space(spec: str, space: str, size: int | None) -> Encoder:
    encoder, path = load_encoder(spec, size=size), Path(spec)
    folder = path if path.is_dir() else path.parent
    heads = read_heads(encoder, folder) if path.exists() else None
    return in_space(encoder, heads, space, spec)


def with_space(spec: str, space: str | None) -> str:
    """MODEL and --space as one specification."""
    return spec if space is None else f"{spec}#{space}"


def parse_options(text: str | None) -> dict[str, Any]:
    """ "width=16&norm=group" → {"width": 16, "norm": "group"}."""
    pairs = (part.partition("=") for part in (text or "").split("&") if part)
    return {key: yaml.safe_load(value) for key, _, value in pairs}


def _from_file(file: Path, size: int | None) -> Encoder:
    card_file = file.with_suffix(".json")
    for needed in (file, card_file):
        if not needed.exists():
            hint = (
                "train first, or give --resume"
                if (file.parent / "config.yaml").exists()
                else f"MODEL is {FORMS}"
            )
            raise UserError(f"{needed} is missing: {hint}")
    card, weights = _read_card(card_file), read_weights(file)
    arch = card["arch"]
    match = SPEC.match(arch)
    if match:
        options, side = parse_options(match["options"]), size or card["size"]
        encoder = build(match["arch"], options, size=side, spec=arch, pool=card.get("pool")).eval()
    else:
        encoder = Encoder(_call_factory(arch), Card(arch, card["size"])).eval()
    load_into(encoder, weights, str(file))
    encoder.card = replace(
        encoder.card,
        arch=arch,
        size=size or card["size"],
        mean=tuple(card["mean"]),
        std=tuple(card["std"]),
        interpolation=card.get("interpolation", "bilinear"),
        method=card.get("method"),
        cues=card.get("cues", {}),
    )
    return encoder


def _read_card(file: Path) -> dict[str, Any]:
    try:
        card: dict[str, Any] = json.loads(file.read_text())
        missing = [key for key in ("arch", "size", "mean", "std") if key not in card]
    except (ValueError, TypeError) as error:
        raise UserError(f"{file} is damaged ({error}): export or train the encoder again") from None
    if missing:
        raise UserError(
            f"{file} has no {missing[0]!r}: it is not the card that cuewise writes beside an encoder"
        )
    return card


def _call_factory(spec: str) -> nn.Module:
    module_name, _, name = spec.partition(":")
    sys.path.insert(0, "")  # a module in the working folder, as with `python -m`
    try:
        target: Any = importlib.import_module(module_name)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise UserError(f"cannot import {spec!r}: {error}; MODEL is {FORMS}") from error
    finally:
        sys.path.remove("")
    try:
        model = target() if callable(target) and not isinstance(target, nn.Module) else target
    except Exception as error:  # the user's own code: its traceback is shown with --debug
        raise UserError(f"{spec} failed: {type(error).__name__}: {error} (--debug shows where)") from error
    if not isinstance(model, nn.Module):
        raise UserError(f"{spec} returned {type(model).__name__}, not an nn.Module")
    return model


def parameters(encoder: Encoder) -> int:
    """How many numbers the backbone holds."""
    return sum(p.numel() for p in encoder.backbone.parameters())


def save_encoder(encoder: Encoder, file: Path, **card: Any) -> None:
    """Write FILE.safetensors (the backbone alone, in its library's key names) and FILE.json beside it, atomically."""
    state = {k: v.detach().cpu().contiguous().clone() for k, v in encoder.backbone.state_dict().items()}
    content = {**encoder.card.as_dict(), **card, "dim": encoder.dim, "parameters": parameters(encoder)}
    with aside(file.with_suffix(".json")) as text, aside(file) as part:
        write_weights(state, part)
        text.write_text(json.dumps(content, indent=2) + "\n")


def as_torch_device(name: str) -> torch.device:
    """ "auto" is the best device there is."""
    if name != "auto":
        return torch.device(name)
    return torch.device(
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
