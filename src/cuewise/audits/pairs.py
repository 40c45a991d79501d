"""Pairs of views whose cosine is measured: a query with its positive, another image, its patches and its texture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.audits.answerer import Ids, Unasked
from cuewise.audits.change import Change, Input, Pixels
from cuewise.audits.scenes import Scene
from cuewise.cues import patches
from cuewise.cues.texture import Texture
from cuewise.encoders.cached import weights_hash
from cuewise.encoders.embed import evaluating
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.spaces import Spaces
from cuewise.train.reload import is_run, load_method
from cuewise.views import RECIPES, Recipe, apply, center
from cuewise.views.negatives.texture import moved

if TYPE_CHECKING:
    from cuewise.audits.measured import Measured

ROLES = ("query", "positive", "patch", "texture")  # views of one image
PAIRS = ("positive", "random", "patch", "texture")  # partners of the query
LARGEST = 128  # side of the image that a texture is made of; larger images are reduced first

Values = NDArray[np.float32]


@dataclass(frozen=True)
class PairSettings:
    """How the pairs are drawn: MoCo-v2's views unless `recipe` is given; `patch` is (smallest, largest) in pixels, by
    default the published range scaled to the input."""

    recipe: Recipe | None = None
    patch: tuple[int, int] | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        return f"pairs {self.recipe} {self.patch} {self.seed}"


@dataclass(frozen=True)
class PairViews:
    """A rendering: query, positive, patch and texture view of an image for every input size.

    `numbers`: what the random numbers of image k follow from, beside the seed.
    """

    inputs: tuple[Input, ...]
    settings: PairSettings
    numbers: tuple[int, ...]

    count = len(ROLES)
    asked: tuple[Change, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.settings.key}\0{self.numbers}"

    def attached(self, number: int) -> None:
        return None

    def views(
        self, image: Pixels, name: str, number: int = 0, scene: Scene | None = None
    ) -> dict[str, Pixels]:
        out = {}
        for taken in self.inputs:
            recipe = self.settings.recipe or recipe_of(taken.size)
            rng = np.random.default_rng((self.settings.seed, self.numbers[number]))
            made = pair_views(image, replace(recipe, size=taken.size), rng, self.settings.patch)
            out[taken.key] = np.stack([made[role] for role in ROLES])
        return out


def recipe_of(size: int) -> Recipe:
    """The views of MoCo-v2 at this size."""
    return replace(RECIPES["moco-v2"], size=size).scaled_blur()


def pair_views(
    image: Pixels, recipe: Recipe, rng: np.random.Generator, patch: tuple[int, int] | None = None
) -> dict[str, Pixels]:
    """query, positive, patch and texture; the texture negative is shown with the query's own parameters, copied."""
    (height, width), size = image.shape[:2], recipe.size
    query, positive = (recipe.sample(rng, height, width) for _ in range(2))
    shown = apply(image, query, size)
    cut = patches.apply(shown, patches.sample(rng, size, size, size, patch))
    out = {"query": shown, "positive": apply(image, positive, size), "patch": cut}
    texture = Texture()(center(image, min(LARGEST, height, width)), rng)
    out["texture"] = apply(texture, moved(query, image.shape, texture.shape), size)
    return out


@dataclass
class Embedder:
    """What is compared: features of the encoder, through the projector where there is one, and the key network's."""

    encoder: Encoder
    projector: nn.Module | None = None
    key_network: nn.Module | None = None
    where: str = "pooled features"

    @property
    def input(self) -> Input:
        return Input.of(self.encoder)

    @cached_property
    def key(self) -> str:
        parts = [self.encoder, self.projector, self.key_network]
        return " ".join(weights_hash(m) if m is not None else "-" for m in parts)

    @property
    def partners(self) -> tuple[str, ...]:
        """Networks on the partner's side."""
        return ("query network", "key network") if self.key_network is not None else ("query network",)

    def on_cpu(self) -> Embedder:
        return replace(
            self,
            encoder=self.encoder.cpu(),
            projector=self.projector.cpu() if self.projector is not None else None,
            key_network=self.key_network.cpu() if self.key_network is not None else None,
        )

    def look(self, views: Tensor, rendering: Any) -> tuple[NDArray[np.float32], Ids]:
        """B×R×S×S×3 → unit vectors B×(R·K·C), K networks; no answers."""
        device = next(self.encoder.parameters(), torch.zeros(())).device
        parts = []
        with evaluating(self.encoder):
            for role in range(views.shape[1]):
                x = self.encoder.normalise(views[:, role].to(device))
                parts += [F.normalize(z.float(), dim=1).cpu() for z in self._networks(x)]
        return torch.stack(parts, 1).flatten(1).numpy(), np.empty((len(views), 0), np.int64)

    def _networks(self, x: Tensor) -> list[Tensor]:
        features = self.encoder(x)
        out = [self.projector(features) if self.projector is not None else features]
        return out + ([self.key_network(x)] if self.key_network is not None else [])


def embedder_of(encoder: Encoder, run: Any = None) -> Embedder:
    """Encoder and projector of a run; the features of any other model, and those of a chosen space unchanged."""
    if isinstance(encoder.backbone, Spaces):
        return Embedder(encoder, where=f"space {encoder.card.cues['space']}")
    method = load_method(run) if run is not None and is_run(run) else None
    projector, key = method.similarity_networks() if method is not None else (None, None)
    if projector is None:
        return Embedder(encoder)
    device = next(encoder.parameters()).device
    key = key.to(device).eval() if key is not None else None
    return Embedder(encoder, projector.to(device).eval(), key, "projector output")


def similarities(
    model: Measured, data: Any, settings: PairSettings, limit: int = 0
) -> tuple[list[str], dict[str, Values]]:
    """Image names, and cosines [n] by pair, on up to `limit` images (0: all), the same ones for every model.

    Keys are "positive", "random", "patch", "texture", and "positive key network" … where the run has a key network.
    """
    part, _ = pair_work(data, settings, limit)
    seen = model.pairs(data, settings, limit)
    if len(seen.index) < 2:
        raise Unasked("similarity needs two readable images: raise --limit, or see the list of skipped files")
    partners = model.embedder.partners
    z = torch.from_numpy(seen.features).unflatten(1, (len(ROLES), len(partners), -1))  # N×R×K×C
    query, out = z[:, 0, 0], {}
    for k, partner in enumerate(partners):
        suffix = "" if k == 0 else f" {partner}"
        rows = {role: z[:, r, k] for r, role in enumerate(ROLES)}
        rows["random"] = rows["query"].roll(1, 0)  # another image's view: the order is random already
        out.update({pair + suffix: (query * rows[pair]).sum(1).numpy() for pair in PAIRS})
    return [part.name(int(i)) for i in seen.index], out


def pair_work(data: Any, settings: PairSettings, limit: int) -> tuple[Any, tuple[int, ...]]:
    """The images that pairs are made of, in random order, and their numbers in `data`."""
    count = min(limit or len(data), len(data))
    numbers = np.random.default_rng(settings.seed).permutation(len(data))[:count]
    return data.select(numbers), tuple(numbers.tolist())
