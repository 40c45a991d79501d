"""`cuewise export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import One
from cuewise.verbs.arguments import Pretrained, Result, specified

TOPIC = "share"


def export(
    run: Annotated[One, "a run folder or encoder.safetensors"],
    *,
    format: Annotated[str, "safetensors, torchvision, timm or onnx"],
    out: Annotated[One, "the file to write"],
    space: Annotated[
        str | None, "of a looc run: v, z0, a left-out augmentation, all, or several joined by + (onnx)"
    ] = None,
    pretrained: Pretrained = False,
    normalise: Annotated[bool, "onnx: put mean and std into the file, which then takes RGB in 0…1"] = False,
    overwrite: Annotated[bool, "replace the file in --out"] = False,
) -> Result:
    """Write a trained encoder for another library.

    cuewise export runs/plain --format safetensors --out plain.safetensors
    cuewise export runs/plain --format timm --out plain.pth
    """
    from cuewise.encoders.export import export_encoder

    spec = specified(str(run), space, pretrained)
    return Result(export_encoder(spec, format, Path(out), normalise=normalise, overwrite=overwrite))
