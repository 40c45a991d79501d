"""Texture suppression of a view: the whole image is filtered before its crop is taken.

Any cue operator with `suppresses = True` is a filter that `--suppress` lists; your own is package.module:Name.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue
from cuewise.cues.registry import CUES
from cuewise.errors import UserError, unknown
from cuewise.views.params import Suppress

Pixels = NDArray[np.uint8]
SHARE = 0.5  # of the views; the others are blurred half of the time: 0.5 / 0.25 / 0.25


def filters() -> tuple[str, ...]:
    """Names of the cue operators that suppress texture."""
    return tuple(name for name, kind in CUES.all().items() if kind.suppresses)


@cache
def suppressor(name: str) -> Cue:
    """The filter of that name with its default options, or an error that lists what there is."""
    if ":" not in name and name not in filters():
        raise unknown("--suppress: no filter", name, filters(), "; your own cue is package.module:Name")
    kind = CUES.get(name)
    if not kind.suppresses:
        raise UserError(f"--suppress {name}: {kind.name} does not say `suppresses = True`")
    return kind()


def draw_suppress(kind: str, u: float, height: int, width: int) -> Suppress:
    """What the filter draws for an image of that size, from one uniform number."""
    return Suppress(kind, tuple(suppressor(kind).draw_view(u, height, width).items()))


def suppressed(image: Pixels, params: Suppress) -> Pixels:
    """The image without (much of) its texture."""
    return np.ascontiguousarray(suppressor(params.kind).render(image, dict(params.drawn)))
