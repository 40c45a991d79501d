"""What cue operators draw from their generator, named for the manifest; seed and settings determine the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuewise.cues import blur, diffusion, patches
from cuewise.cues.texture_patches import extract_patches
from cuewise.data import Image

Describe = Callable[[Image, np.random.Generator, dict[str, Any]], dict[str, Any]]


def _gaussian(image: Image, rng: np.random.Generator, settings: dict[str, Any]) -> dict[str, Any]:
    sigma = settings["sigma"]
    form = settings["form"]
    return {"sigma": blur.draw_sigma(rng, min(image.shape[:2]), form) if sigma is None else sigma}


def _patch(image: Image, rng: np.random.Generator, settings: dict[str, Any]) -> dict[str, Any]:
    height, width = image.shape[:2]
    sizes = patches.parse_range(settings["patch_size"]) if settings["patch_size"] else None
    chosen: Any = tuple(name.strip() for name in settings["augment"].split(",") if name.strip())
    params = patches.sample(
        rng, height, width, (height, width), sizes, overlap=settings["overlap"], augment=chosen
    )
    return params.to_dict()


def _steps(image: Image, rng: np.random.Generator, settings: dict[str, Any]) -> dict[str, Any]:
    steps = settings["steps"]
    if steps is None:
        return {"steps": diffusion.scaled_steps(min(image.shape[:2]))}
    return {"steps": steps if isinstance(steps, int) else int(rng.integers(steps[0], steps[1] + 1))}


def _boxes(image: Image, rng: np.random.Generator, settings: dict[str, Any]) -> dict[str, Any]:
    patch = settings["patch"]
    side = {"side": patch} if isinstance(patch, int) else {"rule": patch}
    found = extract_patches(image, rng, **side)
    return {"boxes": found.boxes, "side": found.boxes[0][2], "scale": found.scale}


DRAWN: dict[str, Describe] = {
    "anisotropic": _steps,
    "robust": _steps,
    "gaussian": _gaussian,
    "patch": _patch,
    "quilting": _boxes,
}
