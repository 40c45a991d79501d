"""The texture set: one synthesised texture for each image, from its centre patch and a random one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from cuewise.cues.cue import Cue
from cuewise.cues.texture import Texture, synthesize
from cuewise.errors import UserError
from cuewise.makers.layout import MakerTask
from cuewise.makers.maker import OfCue, Picture, item_seed

PUBLISHED = 224  # side of the published textures


@dataclass(frozen=True)
class SizedTexture(Texture):
    """The operator's options, and the size of what is written."""

    size: Annotated[int, "side in pixels; 0: that of the image, or 224 where that is larger"] = 0


@dataclass(frozen=True)
class TextureMaker(OfCue):
    """The texture in its own size: `size`, or as the image where that is at most 224, else 224×224."""

    name = "texture"
    summary = "local texture without any layout (multiresolution synthesis)"
    cue: Cue = field(default_factory=SizedTexture)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        options = dict(self.settings)
        size, image = options.pop("size"), piece.image()
        if size < 0 or 0 < size < 8:
            raise UserError(
                f"make texture: size {size}: give 8 pixels or more, or 0 for that of the image up to 224"
            )
        cue, own = Texture(**options), item_seed(seed, self.name, piece.names[0])
        height, width = image.shape[:2]
        drawn = cue.draw(np.random.default_rng(own), height, width)
        shape = (height, width) if max(height, width) <= PUBLISHED else (PUBLISHED, PUBLISHED)
        texture = synthesize(
            cue.examples(image, drawn), (size, size) if size else shape, rng=drawn["seed"], search=cue.search
        )
        found = {"neighbours": cue.search.neighbours, "random": cue.search.random}
        yield Picture(texture, own, {**drawn, **found})
