"""A trained encoder for other programs: safetensors, torchvision, timm, ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import timm
import torch
import torchvision
from timm.models.vision_transformer import VisionTransformer

from cuewise.encoders.card import warn_if_random
from cuewise.encoders.constructor import first_line, parse_options
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.export_onnx import write_onnx
from cuewise.encoders.load import SPEC, load_encoder, outputs_of
from cuewise.encoders.spaces import Spaces
from cuewise.encoders.vit_tiny import TIMM_NAME, ViTTiny
from cuewise.encoders.weights import write_weights
from cuewise.errors import UserError
from cuewise.files import aside, hold_file, write_json

TORCH = (".pth", ".pt", ".bin")
ENDINGS = {
    "safetensors": (".safetensors",),
    "torchvision": (".safetensors", *TORCH),
    "timm": (".safetensors", *TORCH),
    "onnx": (".onnx",),
}


def export_encoder(run: str, format: str, out: Path, *, normalise: bool, overwrite: bool) -> dict[str, Any]:
    """Write the encoder in `format`; it is loaded back and compared before the file gets its name.

    The type of the file follows its ending. A card is written beside it: FILE.json for X.safetensors (as cuewise
    reads it), X.pth.json for X.pth, so that two exports never share one.
    """
    if format not in ENDINGS:
        raise UserError(f"--format {format}: {', '.join(ENDINGS)}")
    if out.suffix not in ENDINGS[format]:
        raise UserError(f"--out {out}: --format {format} writes {', '.join(ENDINGS[format])}")
    if normalise and format != "onnx":
        raise UserError(f"--normalise belongs to --format onnx: {format} holds weights alone")
    side = out.with_suffix(".json") if out.suffix == ".safetensors" else out.with_name(out.name + ".json")
    with hold_file(out, overwrite), hold_file(side, overwrite):
        return _export(run, format, out, side, normalise)


def _export(run: str, format: str, out: Path, side: Path, normalise: bool) -> dict[str, Any]:
    encoder = load_encoder(run, head=Path(run).exists())
    warn_if_random(encoder.card, run)
    if isinstance(encoder.backbone, Spaces) and format != "onnx":
        raise UserError(
            f"--format {format} holds a backbone of its library, and --space {encoder.card.cues['space']} is more than "
            f"that: use --format onnx"
        )
    card = {**encoder.card.as_dict(), "dim": encoder.dim, "format": format}
    if format == "onnx":
        how = write_onnx(encoder, out, card, normalise)
    else:
        how = {"safetensors": _safetensors, "torchvision": _torchvision, "timm": _timm}[format](encoder, out)
    write_json(side, {**card, "load": how})
    return {"file": str(out), "card": str(side), "format": format, "load": how}


def _write(encoder: Encoder, out: Path) -> str:
    """The state dict as the ending says; returns the expression that reads it."""
    if out.suffix == ".safetensors":
        write_weights(encoder.whole_state(), out)
        return 'safetensors.torch.load_file("FILE")'
    with aside(out) as part:
        torch.save(encoder.whole_state(), part)
    return 'torch.load("FILE")'


def _safetensors(encoder: Encoder, out: Path) -> str:
    _write(encoder, out)
    return f'cuewise.encoders.load_encoder("{encoder.card.arch}:FILE")'


def _torchvision(encoder: Encoder, out: Path) -> str:
    """A state dict for torchvision's own class: only its classifier is missing, where the run kept none."""
    name, options = _name(encoder, {"torchvision", "timm"})
    if name not in torchvision.models.list_models(module=torchvision.models):
        raise UserError(
            f"{encoder.card.arch} is not a torchvision architecture; use --format timm, safetensors or onnx"
        )
    try:
        if encoder.head is not None:
            options["num_classes"] = outputs_of(encoder)
        model = torchvision.models.get_model(name, weights=None, **options)
        missing, odd = model.load_state_dict(encoder.whole_state(), strict=False)
    except (TypeError, RuntimeError, ValueError) as error:
        raise UserError(f"torchvision cannot build {encoder.card.arch}: {first_line(error)}") from error
    classifier = list(model.state_dict())[-2:]
    if odd or not set(missing) <= set(classifier):
        raise UserError(
            f"the keys of {encoder.card.arch} are not those of torchvision's {name}: {(odd or missing)[:3]}"
        )
    words = "".join(f", {k}={v!r}" for k, v in options.items())
    read = _write(encoder, out)
    return f'torchvision.models.get_model("{name}"{words}).load_state_dict({read}, strict=False)'


def _timm(encoder: Encoder, out: Path) -> str:
    """A state dict that timm.create_model loads strictly, with a classifier where the run kept one."""
    name, options = _name(encoder, {"torchvision", "timm", "cuewise"})
    name = "cuewise_resnet_tiny" if name == "resnet-tiny" else name
    if isinstance(encoder.backbone, ViTTiny):
        name, options = TIMM_NAME, encoder.backbone.timm_options
    elif encoder.card.pool != "model" and isinstance(encoder.backbone, VisionTransformer):
        options = {"img_size": encoder.card.size, "global_pool": encoder.card.pool, **options}
    if not timm.is_model(name.split(".")[0]):
        raise UserError(
            f"{encoder.card.arch} is not a timm architecture; use --format torchvision, safetensors or onnx"
        )
    classes = outputs_of(encoder) if encoder.head is not None else 0
    try:
        model = timm.create_model(name, num_classes=classes, **options)
        model.load_state_dict(encoder.whole_state())
    except (TypeError, RuntimeError, ValueError) as error:
        raise UserError(
            f"the keys of {encoder.card.arch} are not those of timm's {name}: {first_line(error)[:200]}"
        ) from error
    read = _write(encoder, out)
    first = "import cuewise.encoders; " if name == "cuewise_resnet_tiny" else ""
    words = "".join(f", {k}={v!r}" for k, v in options.items())
    return f'{first}timm.create_model("{name}", num_classes={classes}{words}).load_state_dict({read})'


def _name(encoder: Encoder, libraries: set[str]) -> tuple[str, dict[str, Any]]:
    match = SPEC.match(encoder.card.arch)
    library = match["arch"].partition("/")[0] if match else ""
    if match is None or library not in libraries:
        raise UserError(
            f"{encoder.card.arch} cannot be exported to that library; use --format safetensors or onnx"
        )
    return match["arch"].partition("/")[2], parse_options(match["options"])
