"""The texture set: one synthesised texture an image, from its centre patch and a random one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cuewise.cues.texture import Search, synthesize
from cuewise.cues.texture_patches import extract_patches
from cuewise.errors import UserError
from cuewise.make.makers import Maker, Picture, Settings, item_seed
from cuewise.make.plan import Piece

PUBLISHED = 224  # side of the published textures


def draw(piece: Piece, settings: Settings, seed: int) -> Iterator[Picture]:
    """The texture in its own size: `size`, or as the image where that is at most 224, else 224×224."""
    own = item_seed(seed, "texture", piece.names[0])
    rng = np.random.default_rng(own)
    image, rest = piece.image(), dict(settings)
    patch, fast, size = rest.pop("patch"), rest.pop("fast"), rest.pop("size")
    if size < 0 or 0 < size < 8:
        raise UserError(
            f"make texture: size {size}: give 8 pixels or more, or 0 for that of the image up to 224"
        )
    side = {"side": patch} if isinstance(patch, int) else {"rule": patch}
    found = extract_patches(image, rng, **side)
    if fast:
        rest |= {"neighbours": 24, "random": 10}
    own_size = image.shape[:2] if max(image.shape[:2]) <= PUBLISHED else (PUBLISHED, PUBLISHED)
    shape = (size, size) if size else own_size
    texture = synthesize(found.examples, shape, rng=rng, search=Search(**rest))
    drawn = {**rest, "boxes": found.boxes, "side": found.boxes[0][2], "scale": found.scale}
    yield Picture(texture, own, drawn)


def texture_maker(cue: Maker) -> Maker:
    """The maker of the cue "texture" with a size of its own and what was drawn."""
    return replace(cue, settings={**cue.settings, "size": 0}, draw=draw)
