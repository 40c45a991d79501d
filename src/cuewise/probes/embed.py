"""Embeddings of a data set in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cuewise.data import open_data
from cuewise.data.unusable import say_unusable
from cuewise.encoders import load_encoder
from cuewise.encoders.card import warn_if_random
from cuewise.encoders.embed import embed_dataset
from cuewise.encoders.load import as_torch_device
from cuewise.errors import UserError
from cuewise.files import aside, hold_file, writing
from cuewise.options import workers_asked


def write_embeddings(
    model: str,
    data: list[str],
    out: Path,
    *,
    batch_size: int,
    size: int | None,
    workers: str,
    device: str,
    overwrite: bool,
) -> dict[str, Any]:
    """FILE.npz or FILE.parquet: features N×D, paths N, labels N (class names) when folders name them."""
    if out.suffix not in (".npz", ".parquet"):
        raise UserError(f"--out {out}: end the name in .npz or .parquet")
    if not data:
        raise UserError("no DATA given: name a folder of images, an archive, or `shapes`")
    with hold_file(out, overwrite):
        images = open_data(data)
        encoder = load_encoder(model, size=size).to(as_torch_device(device))
        warn_if_random(encoder.card, str(model))
        count = workers_asked(workers)
        found = embed_dataset(encoder, images, batch_size=batch_size, workers=count)
        columns: dict[str, Any] = {
            "features": found.features,
            "paths": np.array([images.name(int(i)) for i in found.index], dtype=np.str_),
        }
        if images.labels is not None:
            columns["labels"] = np.array(images.classes)[found.labels]
        (_write_parquet if out.suffix == ".parquet" else _write_npz)(columns, out)
    skipped = images.fingerprint()["skipped"] + [{"path": p, "why": w} for p, w in found.skipped]
    say_unusable(skipped)
    return {
        "file": str(out),
        "images": len(found.index),
        "dim": found.features.shape[1],
        "weights": encoder.card.weights,
        "skipped": skipped,
    }


def _write_npz(columns: dict[str, Any], out: Path) -> None:
    with writing(out) as handle:
        np.savez(handle, **columns)


def _write_parquet(columns: dict[str, Any], out: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UserError("parquet files need pyarrow: pip install 'cuewise[parquet]'") from error
    features = columns["features"]
    flat = pa.array(features.reshape(-1))
    arrays = {"features": pa.FixedSizeListArray.from_arrays(flat, features.shape[1])}
    arrays |= {k: pa.array(v.tolist()) for k, v in columns.items() if k != "features"}
    with aside(out) as part:
        pq.write_table(pa.table(arrays), part)
