"""ONNX: images in, features out, for any batch and, where the network allows it, any size."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cuewise.encoders.encoder import Encoder
from cuewise.errors import UserError
from cuewise.files import aside

TOLERANCE = 1e-4  # of the largest feature
STEP = 32  # pixels to another size that is tried


class Normalised(nn.Module):
    """The encoder behind its own normalisation: takes RGB in 0…1."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(encoder.card, name)).view(1, 3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder((x - self.mean) / self.std)  # type: ignore[operator]


def write_onnx(encoder: Encoder, out: Path, card: dict[str, Any], normalise: bool) -> str:
    """images B×3×H×W → features B×D, compared with the encoder by onnxruntime before the file gets its name.

    The card is in the model's metadata; `input` says what images are: normalised, or RGB in 0…1.
    """
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    except ImportError as error:
        raise UserError("ONNX needs extra packages: pip install 'cuewise[onnx]'") from error
    network = (Normalised(encoder) if normalise else encoder).eval()
    size = encoder.card.size
    padded = pads_by_size(network)
    any_size = not padded and _takes(network, size + STEP)
    fixed = f"for images of {size} × {size} pixels only, because its padding depends on the size of an image"
    how = fixed if padded else "(this can take minutes)"
    print(f"exporting {encoder.card.arch} to ONNX {how}", file=sys.stderr, flush=True)
    with aside(out) as part:
        _export(network, size, part, any_size)
        session = onnxruntime.InferenceSession(str(part), providers=["CPUExecutionProvider"])
        for side, batch in ((size, 2), (size, 1), *(((size + STEP, 3),) if any_size else ())):
            _compare(session, network, side, batch)
        model = onnx.load(str(part))
        given = "RGB in 0…1" if normalise else "RGB in 0…1, minus mean, divided by std"
        facts = {**card, "input": given, "sizes": "any" if any_size else str(size)}
        onnx.helper.set_model_props(
            model, {k: v if isinstance(v, str) else json.dumps(v) for k, v in facts.items()}
        )
        onnx.save(model, str(part))
    return 'onnxruntime.InferenceSession("FILE").run(None, {"images": x})'


def pads_by_size(network: nn.Module) -> bool:
    """Whether layers pad as TensorFlow's SAME does, by the size of what they get (timm's tf_… models).

    torch.export takes minutes for them with free height and width, and seconds with fixed ones.
    """
    return any(
        type(layer).__name__.endswith("Same") or getattr(layer, "dynamic_padding", False)
        for layer in network.modules()
    )


def _export(network: nn.Module, size: int, file: Path, any_size: bool) -> None:
    auto = torch.export.Dim.AUTO
    shapes = {0: torch.export.Dim("batch", min=1), **({2: auto, 3: auto} if any_size else {})}
    torch.onnx.export(
        network,
        (_images(size, 2),),
        str(file),
        input_names=["images"],
        output_names=["features"],
        dynamic_shapes={"x": shapes},
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def _images(size: int, batch: int) -> Tensor:
    return torch.rand(batch, 3, size, size, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def _takes(network: nn.Module, size: int) -> bool:
    """Whether the network takes images of another size than its own; transformers mostly do not."""
    try:
        network(_images(size, 1))
    except (AssertionError, RuntimeError, ValueError):
        return False
    return True


@torch.no_grad()
def _compare(session: Any, network: nn.Module, size: int, batch: int) -> None:
    x = _images(size, batch)
    ours, theirs = network(x).numpy(), session.run(None, {"images": x.numpy()})[0]
    worst = float(np.abs(ours - theirs).max() / max(1.0, np.abs(ours).max()))
    if not worst <= TOLERANCE:
        raise UserError(
            f"the ONNX model differs from the encoder by {worst:.1e} at {size} pixels; the file was not written"
        )
