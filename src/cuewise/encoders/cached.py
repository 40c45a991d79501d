"""Features on disk: extracted once for these weights, these files and this view; anything that changed is extracted again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
import torchvision
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.compiled import cache_root
from cuewise.data import Dataset, Transform
from cuewise.data.folder import Folder
from cuewise.data.subset import Subset
from cuewise.encoders.embed import Embeddings, embed_dataset
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.libraries import LIBRARIES
from cuewise.errors import UserError
from cuewise.files import writing

BOUND_GB = 4.0  # all features together; CUEWISE_FEATURES_GB says otherwise, 0 keeps none
STALE = 24 * 3600.0  # seconds after which a file left behind by a kill is deleted
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def cached_features(
    encoder: Encoder,
    data: Dataset,
    *,
    view: str = "center",
    transform: Transform | None = None,
    forward: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = 128,
    workers: int | None = None,
    label: str | None = "embedding",
    keep: bool = True,
) -> Embeddings:
    """`embed_dataset`, or what it gave before for the same weights, files and view.

    view   names what `transform` and `forward` do, with every setting; "center" is what happens without them
    keep   False neither reads nor writes the cache
    """
    if (transform or forward) and view == "center":
        raise ValueError("a transform or forward of its own needs a name: give view=…")
    stamp = content_stamp(data) if keep and bound_bytes() > 0 else None
    key = feature_key(encoder, stamp, view)
    found = load(key, data) if key else None
    if found is not None:
        if label:
            print(f"{label}: {len(found.index)} images, features from the cache", file=sys.stderr, flush=True)
        return found
    found = embed_dataset(
        encoder,
        data,
        transform=transform,
        forward=forward,
        batch_size=batch_size,
        workers=workers,
        label=label,
    )
    if key and content_stamp(data) == stamp:  # no file changed while it was read
        save(key, found)
    return found


def feature_key(encoder: Encoder, stamp: str | None, view: str) -> str | None:
    """One digest of everything that features follow from, files by their `content_stamp`; None where that cannot be known."""
    if stamp is None or encoder.card.arch.partition("/")[0] not in LIBRARIES:
        return None  # the code of a model from elsewhere may change while its weights stay
    device = next(encoder.parameters(), torch.zeros(())).device.type
    parts = [weights_hash(encoder), stamp, view, device, _code()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def weights_hash(encoder: nn.Module) -> str:
    """SHA-256 of all tensors with names and shapes, of the architecture as printed, and of plain settings of its parts."""
    printed = re.sub(r"0x[0-9a-f]+", "", repr(encoder))  # addresses of functions change between processes
    digest = hashlib.sha256(printed.encode())
    card = getattr(encoder, "card", None)
    plain = {k: v for k, v in card.as_dict().items() if k != "weights"} if card else None  # hashed below
    digest.update(json.dumps(plain, sort_keys=True).encode())
    for name, module in encoder.named_modules():
        digest.update(f"{name} {type(module).__qualname__} {_settings(module)}\0".encode())
    for name, tensor in encoder.state_dict().items():
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\0".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _settings(module: nn.Module) -> list[tuple[str, Any]]:
    """Public attributes that are plain values, such as the space that an encoder answers in."""
    kinds = (str, int, float, bool, tuple, type(None))
    return sorted(
        (k, v)
        for k, v in vars(module).items()
        if not k.startswith("_") and k != "training" and isinstance(v, kinds)
    )


def content_stamp(data: Dataset) -> str | None:
    """Changes with the list of images and with any file: size and times on disk, checksums in a zip."""
    digest = hashlib.sha256(str(data.fingerprint()["hash"]).encode())
    chosen = np.arange(data.starts[-1]) if data.selection is None else np.unique(data.selection)
    for source, start, end in zip(data.sources, data.starts, data.starts[1:]):
        facts = _facts(source, chosen[(chosen >= start) & (chosen < end)] - start)
        if facts is None:
            return None
        digest.update(facts)
    return digest.hexdigest()


def _facts(source: Any, wanted: NDArray[np.int64]) -> bytes | None:
    """What distinguishes one state of a source from another beyond its list; None where nothing does."""
    if isinstance(source, Subset):
        stamp = content_stamp(source.whole.select(source.rows[wanted]))
        return None if stamp is None else stamp.encode()
    if isinstance(source, Folder):
        return b"".join(_file_facts(os.path.join(source.root, source.index.raw(i))) for i in wanted.tolist())
    index = getattr(source, "index", None)
    if index is not None and "crc" in index.where:
        return np.stack([index.where["crc"][wanted], index.where["size"][wanted]]).astype("<i8").tobytes()
    files = getattr(source, "files", None) or [f for f in [getattr(source, "file", None)] if f is not None]
    if files:
        return json.dumps([f.stamp for f in files]).encode()
    kind = source.fingerprint()["sources"][0]["kind"]
    return b"" if kind in ("shapes", "hf") else None  # their fingerprints follow the content


def _file_facts(path: bytes) -> bytes:
    try:
        s = os.stat(path)
    except OSError:
        return b"gone"
    return f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns}\0".encode()


@cache
def _code() -> str:
    """Versions of the libraries, and a digest of the files here that turn bytes into features."""
    digest = hashlib.sha256(f"{torch.__version__} {torchvision.__version__} {timm.__version__}".encode())
    package = Path(__file__).parents[1]
    for part in ("data", "views", "encoders"):
        for file in sorted((package / part).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def folder() -> Path:
    """Where features are kept; it can be deleted at any time."""
    return cache_root() / "features"


def bound_bytes() -> int:
    """How much all features together may take."""
    text = os.environ.get("CUEWISE_FEATURES_GB", str(BOUND_GB))
    try:
        return int(float(text) * 1e9)
    except ValueError:
        raise UserError(
            f"CUEWISE_FEATURES_GB={text!r}: give a number of gigabytes, 0 keeps no features"
        ) from None


def load(key: str, data: Dataset) -> Embeddings | None:
    """What is stored under `key`; a damaged file counts as missing."""
    path = folder() / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            features, index = file["features"], file["index"]
            skipped = [(str(n), str(w)) for n, w in json.loads(file["skipped"].tobytes())]
        os.utime(path)  # the least recently used go first
    except DAMAGED:
        return None
    labels = data.labels[index] if data.labels is not None else np.full(len(index), -1)
    return Embeddings(features, index, labels.astype(np.int64), skipped)


def save(key: str, found: Embeddings) -> None:
    """Store it, written aside and renamed; a full or read-only disk costs only the next extraction."""
    if found.features.nbytes > bound_bytes():
        return
    skipped = np.frombuffer(json.dumps(found.skipped).encode(), dtype=np.uint8)
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with writing(folder() / f"{key}.npz", shared=True, sync=False) as file:
            np.savez(file, features=found.features, index=found.index, skipped=skipped)
        evict()
    except OSError:
        pass


def evict() -> None:
    """Delete the features that were not used for the longest time until all fit into the bound."""
    files = [(f.stat().st_mtime, f.stat().st_size, f) for f in folder().glob("*.npz")]
    total, bound = sum(size for _, size, _ in files), bound_bytes()
    for _, size, file in sorted(files, key=lambda f: f[0]):
        if total <= bound:
            break
        file.unlink(missing_ok=True)
        total -= size
    for left in folder().glob("*.tmp"):
        if time.time() - left.stat().st_mtime > STALE:
            left.unlink(missing_ok=True)
