"""Similarity of a view to its positive, another image, its patch and its texture negative: the same pairs for every arm."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise.config import resolve
from cuewise.cues import patches
from cuewise.cues.patches import parse_range
from cuewise.cues.texture import Texture
from cuewise.encoders.embed import evaluating
from cuewise.studies.labs import Lab
from cuewise.train.shown import adapt
from cuewise.views import RECIPES, apply

if TYPE_CHECKING:
    from cuewise.studies.trained import Trained

IMAGES = 512


def pair_similarities(t: Trained, lab: Lab) -> dict[str, NDArray[np.float32]]:
    """Cosines [n] of query and positive, random, patch, texture: projector outputs, the query's network on both sides."""
    views = pair_views(json.dumps(_key(t, lab), sort_keys=True))
    encoder = t.method.encoder
    projector = getattr(t.method, "projector", None)
    z: dict[str, Tensor] = {}
    with evaluating(t.method):
        for role, pixels in views.items():
            parts = []
            for start in range(0, len(pixels), 128):
                v = encoder(encoder.normalise(torch.from_numpy(pixels[start : start + 128])))
                parts.append(F.normalize((projector(v) if projector is not None else v).float(), dim=1))
            z[role] = torch.cat(parts)
    q = z["query"]
    partners = {
        "positive": z["positive"],
        "random": q.roll(1, 0),
        "patch": z["patch"],
        "texture": z["texture"],
    }
    return {name: (q * other).sum(1).numpy() for name, other in partners.items()}


def _key(t: Trained, lab: Lab) -> dict[str, object]:
    """What the pairs depend on: the lab's views, not the arm's, so that every arm is asked the same."""
    return {
        "data": list(lab.sets["probe"]),
        "size": lab.base["size"],
        "views": dict(lab.base.get("views", {})),
        "patch": dict(lab.patch),
    }


@lru_cache(maxsize=2)
def pair_views(key: str) -> dict[str, NDArray[np.uint8]]:
    """query, positive, patch and texture of a few hundred images; the texture is shown with the query's parameters."""
    from cuewise.studies.trained import opened

    asked = json.loads(key)
    config = resolve({"size": asked["size"], "views": asked["views"], **asked["patch"]})
    recipe, size = adapt(RECIPES["moco-v2"], config, config.size), config.size
    patch = parse_range(config.patch_size) if config.patch_size else None
    data = opened(tuple(asked["data"]))
    made: dict[str, list[NDArray[np.uint8]]] = {
        role: [] for role in ("query", "positive", "patch", "texture")
    }
    for i in np.random.default_rng(0).permutation(len(data))[:IMAGES].tolist():
        image, rng = data.image(i), np.random.default_rng((0, i))
        query, positive = (recipe.sample(rng, *image.shape[:2]) for _ in range(2))
        made["query"].append(apply(image, query, size))
        made["positive"].append(apply(image, positive, size))
        made["patch"].append(patches.apply(made["query"][-1], patches.sample(rng, size, size, size, patch)))
        texture = Texture(fast=True)(image, rng)
        made["texture"].append(apply(texture, query, size))
    return {role: np.stack(rows) for role, rows in made.items()}
