"""Texture suppression of a view: the whole image is filtered before its crop is taken.

Any cue operator with `suppresses = True` is a filter that `--suppress` lists; your own is package.module:Name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue
from cuewise.cues.registry import CUES
from cuewise.errors import UserError, unknown
from cuewise.options import bare, convert
from cuewise.views.params import Suppress

Pixels = NDArray[np.uint8]
Options = tuple[tuple[str, Any], ...]  # of a filter, as they were asked for
PAIRINGS = ("view", "image")
COPY = "copy"  # what is drawn of copies made beforehand: the number of the set


@dataclass(frozen=True)
class SuppressSettings:
    """The policy of --suppress; the filter's own options stand beside these."""

    pairing: Annotated[
        str, "view: each view of an image is filtered or not by itself; image: all of them together"
    ] = "view"
    share: Annotated[float, "of the views that are filtered; half of the others are blurred"] = 0.5
    copies: Annotated[
        list[str],
        "sets that `cuewise make FILTER` wrote, found by the images' names, in place of filtering; one is drawn per view",
    ] = field(default_factory=list)

    def check(self, own: Mapping[str, Any]) -> None:
        """own: options of the filter that were asked for."""
        if self.pairing not in PAIRINGS:
            raise UserError(f"suppress.pairing {self.pairing!r}: {' or '.join(PAIRINGS)}")
        if not 0 < self.share <= 1:
            raise UserError(
                f"suppress.share {self.share:g}: above 0 and up to 1 (leave --suppress out for none)"
            )
        if self.copies and own:
            raise UserError(
                f"suppress.{next(iter(own))} has no meaning with suppress.copies: those were made with settings of their own"
            )


def filters() -> tuple[str, ...]:
    """Names of the cue operators that suppress texture."""
    return tuple(name for name, kind in CUES.all().items() if kind.suppresses)


@cache
def suppressor(name: str, options: Options = ()) -> Cue:
    """The filter of that name, with its default options where none are given, or an error that lists what there is."""
    if ":" not in name and name not in filters():
        raise unknown("--suppress: no filter", name, filters(), "; your own cue is package.module:Name")
    kind = CUES.get(name)
    if not kind.suppresses:
        raise UserError(f"--suppress {name}: {kind.name} does not say `suppresses = True`")
    return kind().having(**dict(options))


def filter_options(cue: Cue, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a filter from --set suppress.*, converted and tried out; LOW:HIGH becomes a list of two numbers."""
    hints = get_type_hints(type(cue), include_extras=True)
    found: dict[str, Any] = {}
    for name, value in given.items():
        where = f"suppress.{name}"
        span = re.fullmatch(r"(\d+):(\d+)", value) if isinstance(value, str) else None
        if span or isinstance(value, list | tuple):
            low, high = map(int, span.groups()) if span else (int(v) for v in value)
            if low > high:
                raise UserError(f"{where}={value}: the lower end comes first")
            found[name] = [low, high]
        elif "tuple" in str(bare(hints[name])):  # a number where a range will do, too
            found[name] = convert(int, value, where)
        else:
            found[name] = convert(hints[name], value, where)
    if found:
        tried = cue.having(**dict(hashable(found)))
        try:
            tried.render(np.zeros((16, 16, 3), np.uint8), tried.draw_view(0.5, 16, 16))
        except (TypeError, ValueError) as error:
            raise UserError(f"suppress.*: {cue.name} cannot be run with {found}: {error}") from None
    return found


def hashable(options: Mapping[str, Any]) -> Options:
    """Options as a recipe holds them."""
    return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in options.items())


def draw_suppress(
    kind: str, u: float, height: int, width: int, options: Options = (), copies: int = 0
) -> Suppress:
    """What the filter draws for an image of that size, from one uniform number; of copies only the number of the set."""
    if copies:
        return Suppress(kind, ((COPY, int(u * copies)),))
    return Suppress(kind, tuple(suppressor(kind, options).draw_view(u, height, width).items()), options)


def suppressed(image: Pixels, params: Suppress) -> Pixels:
    """The image without (much of) its texture."""
    cue = suppressor(params.kind, params.options)
    return np.ascontiguousarray(cue.render(image, dict(params.drawn)))
