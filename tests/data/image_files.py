"""Real image bytes for the tests of this folder."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import numpy as np
from PIL import Image as Pillow


def pixels(height: int = 24, width: int = 32, seed: int = 0) -> np.ndarray:
    """Smooth colours, so that JPEG keeps them nearly as they are."""
    rng = np.random.default_rng(seed)
    small = Pillow.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    return np.asarray(small.resize((width, height), Pillow.Resampling.BICUBIC))


def encoded(image: np.ndarray | Pillow.Image, form: str = "JPEG", **options: object) -> bytes:
    """An array or Pillow image as the bytes of a file."""
    out = io.BytesIO()
    picture = image if isinstance(image, Pillow.Image) else Pillow.fromarray(image)
    picture.save(out, form, **options)
    return out.getvalue()


def age(path: Path, seconds: float = 60) -> None:
    """Make every folder and file below path look as if it had been at rest for a while."""
    then = time.time() - seconds
    for root, _, files in os.walk(path):
        for name in files:
            os.utime(os.path.join(root, name), (then, then), follow_symlinks=False)
        os.utime(root, (then, then))
    if path.is_file():
        os.utime(path, (then, then))
