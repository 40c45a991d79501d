"""Real images to make sets of, and ways to compare what came out."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow


def photo(seed: int, height: int = 40, width: int = 48) -> np.ndarray:
    """Smooth colours with a little noise."""
    rng = np.random.default_rng(seed)
    small = Pillow.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    smooth = np.asarray(small.resize((width, height), Pillow.Resampling.BICUBIC)).astype(int)
    return np.clip(smooth + rng.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8)


def as_bytes(image: np.ndarray, form: str = "JPEG") -> bytes:
    out = io.BytesIO()
    Pillow.fromarray(image).save(out, form)
    return out.getvalue()


def put(path: Path, seed: int = 0, **size: int) -> Path:
    """A real image file there, of the kind that its ending says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = "PNG" if path.suffix.lower() == ".png" else "JPEG"
    path.write_bytes(as_bytes(photo(seed, **size), form))
    return path


def tree(folder: Path) -> dict[str, str]:
    """Hash of every visible file; hidden ones are not part of a set."""
    found = {}
    for root, folders, files in os.walk(os.fsencode(folder)):
        folders[:] = [name for name in folders if not name.startswith(b".")]
        for name in files:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[os.path.relpath(os.fsdecode(path), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def rows(folder: Path) -> list[dict[str, Any]]:
    """The manifest."""
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_bytes().splitlines()]
