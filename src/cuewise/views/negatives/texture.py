"""Texture negatives: a texture of the image, shown with the very parameters of the view it is a negative of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from cuewise.data import Dataset
from cuewise.views.negatives.negative import Negative, Origin, Pixels
from cuewise.views.operations import apply
from cuewise.views.params import Crop, ViewParams
from cuewise.views.partners import made_textures
from cuewise.views.textures import SynthesisedTextures, Textures


@dataclass(frozen=True)
class TextureNegative(Negative):
    """A texture of the image: nothing is drawn for it, its view parameters are copied."""

    name = "texture"
    summary = "an image synthesised from patches of the original"
    reads = ("texture_data",)

    textures: Textures = field(default_factory=SynthesisedTextures)

    @classmethod
    def build(cls, source: str, count: int, options: Mapping[str, Any], data: Dataset, seed: int) -> Self:
        """Made textures where --texture-data names them, else synthesised while training and kept on disk."""
        places = options["texture_data"]
        return cls(source, count, made_textures(data, places, count) if places else SynthesisedTextures(seed))

    def render(self, origin: Origin, drawn: None, number: int) -> Pixels:
        key = (self.name, number)  # negatives of several views share the textures of the image
        if key not in origin.memo:
            origin.memo[key] = self.textures.texture(origin.sample.image, origin.sample.index, number)
        texture = origin.memo[key]
        view = moved(origin.params, origin.sample.image.shape, texture.shape)
        return apply(texture, view, len(origin.view))

    def warm_up(self) -> None:
        self.textures.warm_up()


def moved(params: ViewParams, old: tuple[int, ...], new: tuple[int, ...]) -> ViewParams:
    """The same view of an image of another size: all as it was, the crop at the same place in proportion."""
    if old[:2] == new[:2]:
        return params
    crop, (y, x) = params.crop, (new[0] / old[0], new[1] / old[1])
    height = max(1, min(new[0], round(crop.height * y)))
    width = max(1, min(new[1], round(crop.width * x)))
    top, left = min(round(crop.top * y), new[0] - height), min(round(crop.left * x), new[1] - width)
    return replace(params, crop=Crop(top, left, height, width))
