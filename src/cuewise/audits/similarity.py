"""How alike are an image and its other view, another image, its patches?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from cuewise import scores
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.encoders.embed import evaluating
from cuewise.train.reload import is_run, load_method
from cuewise.views import RECIPES, PatchNegative, View, Views

PAIRS = ("positive", "random", "patch")
IMAGES = 512


@audit("similarity", "cosine similarity of a view to its positive, to another image, to a patch negative")
def similarity(subject: Subject) -> Finding:
    """Means and histograms over the same pairs for every model; projector outputs where the model has a projector."""
    embed, where = _embedder(subject)
    found = _similarities(subject, embed)
    protocol = f"{where}, evaluation mode, {len(found['positive'])} training images, fixed pairs"
    out = Finding([scores.mean(f"similarity/{pair}", found[pair], protocol) for pair in PAIRS])
    edges = np.linspace(-1, 1, 101)
    middle = ((edges[1:] + edges[:-1]) / 2).round(3).tolist()
    out.figures["similarity"] = {
        "title": f"Similarity of pairs ({where})",
        "kind": "histogram",
        "xlabel": "cosine similarity",
        "ylabel": "share of pairs",
        "series": [
            {"name": f"{subject.name}: {pair}", "x": middle, "y": _shares(found[pair], edges)}
            for pair in PAIRS
        ],
    }
    return out


def _shares(values: NDArray[np.float32], edges: NDArray[np.float64]) -> list[float]:
    counts, _ = np.histogram(np.clip(values, -1, 1), edges)
    return (counts / max(1, len(values))).tolist()


def _embedder(subject: Subject) -> tuple[Callable[[Tensor], Tensor], str]:
    """Encoder and projector of a run; the pooled features of any other model."""
    if subject.run is not None and is_run(subject.run):
        method = load_method(subject.run)
        projector = getattr(method, "projector", None)
        if projector is not None:
            head = projector.to(next(subject.encoder.parameters()).device).eval()
            return lambda x: head(subject.encoder(x)), "projector output"
    return subject.encoder, "pooled features"


def _similarities(subject: Subject, embed: Callable[[Tensor], Tensor]) -> dict[str, NDArray[np.float32]]:
    encoder = subject.encoder
    recipe = RECIPES["moco-v2"]
    recipe = type(recipe)(**{**recipe.__dict__, "size": encoder.card.size}).scaled_blur()
    views = Views([View("query", recipe), View("positive", recipe)], [PatchNegative("patch", "query")])
    rng = np.random.default_rng(subject.seed)
    chosen = rng.permutation(len(subject.train))[:IMAGES]
    parts: dict[str, list[Tensor]] = {role: [] for role in views.roles}
    device = next(encoder.parameters(), torch.zeros(())).device
    with evaluating(encoder):
        for start in range(0, len(chosen), 128):
            made = [
                views(subject.train.image(int(i)), np.random.default_rng((subject.seed, int(i))), int(i))
                for i in chosen[start : start + 128]
            ]
            for role in views.roles:
                x = torch.from_numpy(np.stack([m[role] for m in made])).to(device)
                parts[role].append(F.normalize(embed(encoder.normalise(x)).float(), dim=1).cpu())
    z = {role: torch.cat(rows) for role, rows in parts.items()}
    q = z["query"]
    other = q.roll(1, 0)  # another image: the order is random already
    pairs = {"positive": z["positive"], "random": other, "patch": z["patch"]}
    return {name: (q * b).sum(1).numpy() for name, b in pairs.items()}
