"""The cue-conflict set: the shape of one image, the texture of another, for the user's own classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np

from cuewise.cues.conflict import conflict, pairs
from cuewise.cues.style_adain import AdaIN
from cuewise.cues.style_gram import Gram
from cuewise.data import Dataset, Image
from cuewise.encoders import load_encoder
from cuewise.encoders.card import is_random
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker, Picture, item_seed
from cuewise.makers.names import Stems

PUBLISHED = 1280  # stimuli in the published set: 16 classes × 80


@dataclass(frozen=True)
class CueConflict(Maker):
    """Balanced pairs of (shape, texture) images: <shape>/<shape><i>-<texture><j>."""

    name = "cue-conflict"
    summary = "the shape of one image with the texture of another, for your own classes"
    inputs = 2
    takes_both = False
    n: Annotated[int, "how many stimuli [as many as the published set, or as the images allow]"] = 0
    shape: Annotated[float, "how much of the large-scale brightness is that of the shape image, 0 to 1"] = 0.9
    block: Annotated[float, "side of the texture blocks, as a share of the shorter side"] = 1 / 4
    focus: Annotated[float, "central share of the texture image that blocks come from"] = 0.8
    lines: Annotated[float, "how dark the edges of the shape image are drawn, 0 to 1"] = 1 / 3
    style: Annotated[str, "quilt, or gram and adain through a network"] = "quilt"
    model: Annotated[str, "gram: a convolutional network, e.g. timm/tf_efficientnet_lite0:FILE"] = ""
    encoder: Annotated[str, "adain: a file of weights, VGG-19 up to relu4_1"] = ""
    decoder: Annotated[str, "adain: a file of weights, the mirrored decoder"] = ""

    def __post_init__(self) -> None:
        needs = {"quilt": (), "gram": ("model",), "adain": ("encoder", "decoder")}
        if self.style not in needs:
            raise UserError(f"make cue-conflict: no style {self.style!r}; there are: {', '.join(needs)}")
        for name in ("model", "encoder", "decoder"):
            wanted = name in needs[self.style]
            if bool(getattr(self, name)) != wanted:
                what = (
                    f"style={self.style} needs {name}="
                    if wanted
                    else f"{name}= has no meaning for style={self.style}"
                )
                raise UserError(f"make cue-conflict: {what}; see docs/stylize.md")
        for name in ("shape", "block", "lines") if self.style != "quilt" else ():
            if getattr(self, name) != getattr(type(self), name):
                raise UserError(
                    f"make cue-conflict: {name}= has no meaning for style={self.style}; leave it out"
                )

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """Pairs of images of different classes, each class equally often."""
        if dataset.labels is None:
            raise UserError("make cue-conflict needs classes: give a set with one folder for each class")
        members = {name: np.flatnonzero(dataset.labels == k) for k, name in enumerate(dataset.classes)}
        counts = {name: len(found) for name, found in members.items() if len(found)}
        possible = sum(a * b for a, b in itertools.permutations(counts.values(), 2))
        found = pairs(counts, self.n or min(PUBLISHED, possible), seed)
        rows = [(members[p.shape][p.shape_index], members[p.texture][p.texture_index]) for p in found]
        names = [f"{p.shape}/{p.name}" for p in found]
        stems = Stems(names.__getitem__, len(names), lambda stem, i: (f"{stem}.{end}",))
        facts: dict[str, Sequence[str]] = {
            "class": [p.shape for p in found],
            "shape": [p.shape for p in found],
            "texture": [p.texture for p in found],
        }
        sources = np.array(rows, np.int64).reshape(-1, 2)
        return Layout(dataset, sources, stems, (("", f".{end}"),), None, facts)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        """One stimulus, in the size of the image that gives the shape."""
        own = item_seed(seed, self.name, "\0".join(piece.names))
        image = conflict(
            piece.image(0),
            piece.image(1),
            np.random.default_rng(own),
            shape=self.shape,
            block=self.block,
            focus=self.focus,
            lines=self.lines,
            method=transfer_by(self.style, self.model, self.encoder, self.decoder),
        )
        yield Picture(image, own)


@lru_cache(maxsize=2)
def transfer_by(
    style: str, model: str, encoder: str, decoder: str
) -> Callable[[Image, Image, float], Image] | None:
    """The style transfer that takes the place of quilting; its network is loaded once per process."""
    if style == "gram":
        network = load_encoder(model)
        if is_random(network.card.weights):
            raise UserError(f"make cue-conflict: {model} has random weights; give a file: {model}:FILE")
        return Gram(network.backbone, network.card.mean, network.card.std)
    return AdaIN(encoder, decoder) if style == "adain" else None
