"""Makers that are more than one operator on one image."""

from __future__ import annotations

from collections.abc import Mapping

from cuewise.make.conflicts import CONFLICT
from cuewise.make.corrupted import CORRUPTED
from cuewise.make.embedded import SHAPES_MAKER
from cuewise.make.makers import Maker
from cuewise.make.textures import texture_maker


def makers(cues: Mapping[str, Maker]) -> dict[str, Maker]:
    """Makers beside (or in place of) those of the cue operators."""
    own = {kind.name: kind for kind in (CONFLICT, CORRUPTED, SHAPES_MAKER)}
    return own | {"texture": texture_maker(cues["texture"])}
