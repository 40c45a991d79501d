"""`cuewise embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import COUNT, One
from cuewise.verbs.arguments import (
    MACHINE,
    Data,
    Device,
    Model,
    Pretrained,
    Result,
    Size,
    Space,
    Workers,
    joined,
    specified,
)

TOPIC = "measure"


def embed(
    model: Model,
    *data: Data,
    out: Annotated[One, "FILE.npz or FILE.parquet with features, paths, and labels when folders name them"],
    batch_size: Annotated[int, "images per forward pass", MACHINE, COUNT] = 128,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    workers: Workers = "auto",
    device: Device = "auto",
    overwrite: Annotated[bool, "replace the file in --out"] = False,
) -> Result:
    """Write embeddings of images.

    cuewise embed runs/plain photos --out photos.npz
    cuewise embed cuewise/resnet-tiny shapes:conflict --out shapes.npz --batch-size 64
    """
    from cuewise.probes.embed import write_embeddings

    return Result(
        write_embeddings(
            specified(model, space, pretrained),
            joined(data),
            Path(out),
            batch_size=batch_size,
            size=size,
            workers=str(workers),
            device=device,
            overwrite=overwrite,
        )
    )
