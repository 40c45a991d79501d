"""How alike are an image and its other view, another image, its patches, its texture?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise import scores
from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.cues.texture import texture_cue
from cuewise.data import BrokenImage
from cuewise.encoders.embed import evaluating
from cuewise.encoders.spaces import Spaces
from cuewise.progress import Progress
from cuewise.train.reload import is_run, load_method
from cuewise.views import RECIPES, Crop, PatchNegative, Recipe, View, Views, apply, center

PAIRS = ("positive", "random", "patch", "texture")
BATCH = 128
LARGEST = 128  # side of the image a texture is made of; larger ones are made smaller first
BINS = 100  # over [−1, 1]

Pixels = NDArray[np.uint8]
Values = NDArray[np.float32]


@audit("similarity", "cosine of a view to its positive, to another image, to its patch and texture negatives")
def similarity(subject: Subject) -> Finding:
    """Means, spreads and histograms over the same pairs for every model, in evaluation mode.

    Projector outputs where the model is a run with a projector; the query's partner goes through the same network, or
    through the key network where the run has one, which stands as a second row in the table.
    """
    embedder = _embedder(subject)
    names, found = _similarities(subject, embedder)
    own = {pair: found[pair] for pair in PAIRS}
    protocol = (
        f"{embedder.where}, query network on both sides, evaluation mode, {len(own['positive'])} images, "
        "fixed pairs"
    )
    out = Finding([scores.mean(f"similarity/{pair}", own[pair], protocol) for pair in PAIRS])
    out.figures["similarity"] = {
        "title": f"Similarity of pairs ({embedder.where})",
        "kind": "histogram",
        "xlabel": "cosine similarity",
        "ylabel": "share of pairs",
        "series": [{"name": pair, **_histogram(own[pair])} for pair in PAIRS],
        "facet": True,
    }
    out.tables["similarity"] = {
        "title": "Similarity of pairs",
        "columns": ["pair", "partner", "mean", "spread", "pairs"],
        "rows": [_row(name, values) for name, values in found.items()],
    }
    out.tables["similarity/decisions"] = {
        "title": "Similarity, image by image",
        "columns": ["image", *PAIRS],
        "rows": [[n, *row] for n, row in zip(names, np.stack(list(own.values()), 1).round(6).tolist())],
        "pairs": {f"similarity/{pair}": pair for pair in PAIRS},
    }
    out.galleries["similarity"] = _gallery(subject)
    return out


def _row(name: str, values: Values) -> list[Any]:
    pair, _, partner = name.partition(" ")
    return [pair, partner or "query network", float(values.mean()), float(values.std(ddof=1)), len(values)]


def _histogram(values: Values) -> dict[str, list[float]]:
    counts, edges = np.histogram(np.clip(values, -1, 1), BINS, (-1, 1))
    return {"x": edges.round(6).tolist(), "y": (counts / max(1, len(values))).tolist()}


@dataclass(frozen=True)
class Embedder:
    """The network of the query, that of the keys where there is another, and what they give."""

    query: Callable[[Tensor], Tensor]
    key: nn.Module | None
    where: str


def _embedder(subject: Subject) -> Embedder:
    """Encoder and projector of a run; the features of any other model, and those of a chosen space as they are."""
    if isinstance(subject.encoder.backbone, Spaces):
        return Embedder(subject.encoder, None, f"space {subject.encoder.card.cues['space']}")
    if subject.run is not None and is_run(subject.run):
        method = load_method(subject.run)
        projector = getattr(method, "projector", None)
        if projector is not None:
            device = next(subject.encoder.parameters()).device
            key = getattr(method, "key_embedder", None) or getattr(method, "key_network", None)
            head = projector.to(device).eval()
            key = key.to(device).eval() if isinstance(key, nn.Module) else None
            return Embedder(lambda x: head(subject.encoder(x)), key, "projector output")
    return Embedder(subject.encoder, None, "pooled features")


def recipe_of(size: int) -> Recipe:
    """The views of MoCo-v2 at this size."""
    return replace(RECIPES["moco-v2"], size=size).scaled_blur()


def pair_views(image: Pixels, recipe: Recipe, rng: np.random.Generator) -> dict[str, Pixels]:
    """query, positive, patch and texture; the texture negative is shown with the query's own parameters, copied."""
    views = Views([View("query", recipe), View("positive", recipe)], [PatchNegative("patch", "query")])
    height, width = image.shape[:2]
    drawn = views.sample(rng, height, width)
    out = views.render(image, drawn)
    side = min(LARGEST, height, width)
    small = center(image, side)
    texture = texture_cue(small, rng, fast=True)
    crop = drawn.positives["query"].crop
    y, x = side / height, side / width
    box = (
        round(crop.top * y),
        round(crop.left * x),
        max(1, round(crop.height * y)),
        max(1, round(crop.width * x)),
    )
    top, left = min(box[0], side - 1), min(box[1], side - 1)
    moved = Crop(top, left, min(box[2], side - top), min(box[3], side - left))
    out["texture"] = apply(texture, replace(drawn.positives["query"], crop=moved), recipe.size)
    return out


def wanted(subject: Subject) -> int:
    """How many images pairs are made of: --limit, and with 0 all."""
    return min(subject.settings.limit or len(subject.train), len(subject.train))


def _readable(subject: Subject) -> Iterator[tuple[str, dict[str, Pixels]]]:
    """Name and views of training images up to the limit, the same for every model; broken files are passed over."""
    recipe, left = recipe_of(subject.encoder.card.size), wanted(subject)
    for i in np.random.default_rng(subject.seed).permutation(len(subject.train)).tolist():
        try:
            image = subject.train.image(i)
        except BrokenImage:
            continue
        yield subject.train.name(i), pair_views(image, recipe, np.random.default_rng((subject.seed, i)))
        left -= 1
        if not left:
            return


def _similarities(subject: Subject, embedder: Embedder) -> tuple[list[str], dict[str, Values]]:
    """Names, and cosines by pair; `positive key network` and so on have the key network on the partner's side."""
    encoder = subject.encoder
    device = next(encoder.parameters(), torch.zeros(())).device
    networks: dict[str, Callable[[Tensor], Tensor]] = {"": embedder.query}
    if embedder.key is not None:
        networks[" key network"] = embedder.key
    parts: dict[str, list[Tensor]] = {}
    names: list[str] = []
    found, total = _readable(subject), wanted(subject)
    with evaluating(encoder), Progress(total, "images", f"{subject.name}: pairs") as bar:
        while batch := list(islice(found, BATCH)):
            names += [name for name, _ in batch]
            for role in ("query", "positive", "patch", "texture"):
                stack = np.stack([views[role] for _, views in batch])
                x = encoder.normalise(torch.from_numpy(stack).to(device))
                for name, network in networks.items():
                    unit = F.normalize(network(x).float(), dim=1).cpu()
                    parts.setdefault(role + name, []).append(unit)
            bar.add(len(batch))
    if len(names) < 2:
        raise Unasked("similarity needs two readable images: raise --limit, or see the list of skipped files")
    z = {name: torch.cat(rows) for name, rows in parts.items()}
    q, out = z["query"], {}
    for name in networks:
        # another image's view: the order is random already
        pairs = {"positive": z["positive" + name], "random": z["query" + name].roll(1, 0)}
        pairs |= {pair: z[pair + name] for pair in ("patch", "texture")}
        out.update({pair + name: (q * b).sum(1).numpy() for pair, b in pairs.items()})
    return names, out


def _gallery(subject: Subject, shown: int = 4) -> dict[str, Any]:
    """What the pairs look like: a query with its partners, a row an image."""
    items = []
    made = [views for _, views in islice(_readable(subject), shown)]
    for row, views in enumerate(made):
        views["random"] = made[row - 1]["query"]
        for role in ("query", *PAIRS):
            items.append(
                {
                    "image": subject.picture(views[role], f"pair-{row}-{role}"),
                    "row": str(row),
                    "caption": role,
                    "badge": "",
                    "alt": f"image {row + 1}: {role}",
                }
            )
    return {"title": "The pairs that are compared", "layout": "rows", "items": items}
