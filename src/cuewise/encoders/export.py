"""A trained encoder for other programs: safetensors, torchvision, timm, ONNX."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
import torchvision
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from cuewise.encoders.constructor import parse_options
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.load import SPEC, load_encoder
from cuewise.encoders.spaces import Spaces
from cuewise.encoders.vit_tiny import TIMM_NAME, ViTTiny
from cuewise.encoders.weights import write_weights
from cuewise.errors import UserError
from cuewise.files import aside, write_json

FORMATS = ("safetensors", "torchvision", "timm", "onnx")


def export_encoder(run: str, format: str, out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Write the encoder in `format`; it is loaded back and compared before the file gets its name."""
    if format not in FORMATS:
        raise UserError(f"--format {format}: {', '.join(FORMATS)}")
    if out.exists() and not overwrite:
        raise UserError(f"{out} exists: use --overwrite or another --out")
    encoder = load_encoder(run)
    if isinstance(encoder.backbone, Spaces) and format != "onnx":
        raise UserError(
            f"--format {format} holds a backbone of its library, and --space {encoder.card.cues['space']} is more than "
            f"that: use --format onnx"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    writer = {"safetensors": _safetensors, "torchvision": _torchvision, "timm": _timm, "onnx": _onnx}[format]
    with aside(out) as part:
        how = writer(encoder, part)
    card = {**encoder.card.as_dict(), "dim": encoder.dim, "format": format, "load": how}
    write_json(out.with_suffix(".json"), card)
    return {"file": str(out), "format": format, "load": how}


def _state(encoder: Encoder) -> dict[str, Tensor]:
    return {k: v.detach().cpu().contiguous().clone() for k, v in encoder.backbone.state_dict().items()}


def _safetensors(encoder: Encoder, part: Path) -> str:
    write_weights(_state(encoder), part)
    return f'cuewise.encoders.load_encoder("{encoder.card.arch}:FILE")'


def _torchvision(encoder: Encoder, part: Path) -> str:
    """A state dict for torchvision's own class: only its classifier is missing."""
    name, options = _name(encoder, {"torchvision", "timm"})
    if name not in torchvision.models.list_models(module=torchvision.models):
        raise UserError(
            f"{encoder.card.arch} is not a torchvision architecture; use --format timm, safetensors or onnx"
        )
    model = torchvision.models.get_model(name, weights=None, **options)
    missing, odd = model.load_state_dict(_state(encoder), strict=False)
    classifier = list(model.state_dict())[-2:]
    if odd or not set(missing) <= set(classifier):
        raise UserError(
            f"the keys of {encoder.card.arch} are not those of torchvision's {name}: {(odd or missing)[:3]}"
        )
    torch.save(_state(encoder), part)
    return f'torchvision.models.get_model("{name}").load_state_dict(torch.load("FILE"), strict=False)'


def _timm(encoder: Encoder, part: Path) -> str:
    """A state dict that timm.create_model(name, num_classes=0) loads strictly."""
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
    model = timm.create_model(name, num_classes=0, **options)
    try:
        model.load_state_dict(_state(encoder))
    except RuntimeError as error:
        raise UserError(
            f"the keys of {encoder.card.arch} are not those of timm's {name}: {str(error)[:200]}"
        ) from error
    torch.save(_state(encoder), part)
    first = "import cuewise.encoders; " if name == "cuewise_resnet_tiny" else ""
    words = "".join(f", {k}={v!r}" for k, v in options.items())
    return f'{first}timm.create_model("{name}", num_classes=0{words}).load_state_dict(torch.load("FILE"))'


def _onnx(encoder: Encoder, part: Path) -> str:
    """images B×3×S×S (normalised) → features B×D, checked with onnxruntime to 1e-4."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    except ImportError as error:
        raise UserError("ONNX needs extra packages: pip install 'cuewise[onnx]'") from error
    size = encoder.card.size
    example = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    batch = torch.export.Dim("batch", min=1)
    folder = part.with_name(part.name + ".folder")
    folder.mkdir(exist_ok=True)
    try:
        file = folder / "encoder.onnx"
        torch.onnx.export(
            encoder,
            (example,),
            str(file),
            input_names=["images"],
            output_names=["features"],
            dynamic_shapes={"x": {0: batch}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        for x in (example, example[:1]):
            ours = encoder(x).detach().numpy()
            theirs = session.run(None, {"images": x.numpy()})[0]
            worst = float(np.abs(ours - theirs).max() / max(1.0, np.abs(ours).max()))
            if worst > 1e-4:
                raise UserError(
                    f"the ONNX model differs from the encoder by {worst:.1e}; the file was not written"
                )
        file.replace(part)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 'onnxruntime.InferenceSession("FILE").run(None, {"images": x})'


def _name(encoder: Encoder, libraries: set[str]) -> tuple[str, dict[str, Any]]:
    match = SPEC.match(encoder.card.arch)
    library = match["arch"].partition("/")[0] if match else ""
    if match is None or library not in libraries:
        raise UserError(
            f"{encoder.card.arch} cannot be exported to that library; use --format safetensors or onnx"
        )
    return match["arch"].partition("/")[2], parse_options(match["options"])
