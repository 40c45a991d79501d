"""Which image sets can be made: one maker a cue operator, and those that need more than one image or folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

import numpy as np

from cuewise.cues.cue import Cue
from cuewise.cues.registry import cues
from cuewise.data import Dataset, Image
from cuewise.errors import unknown
from cuewise.make.plan import Piece, Plan

Settings = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """One made image, the seed it was made with, and what was drawn with that seed."""

    image: Image
    seed: int
    drawn: Mapping[str, Any] = field(default_factory=dict)


Draw = Callable[
    [Piece, Settings, int], Iterator[Picture]
]  # (piece, settings, seed of the set) → its variants
Lay = Callable[[Dataset, Settings, int, str], Plan]  # (data set, settings, seed of the set, ending) → plan


@dataclass(frozen=True)
class Maker:
    """A kind of image set: `lay` plans which files there will be, `draw` makes those of one item."""

    name: str
    summary: str
    settings: Mapping[str, Any]
    draw: Draw
    lay: Lay | None = None  # None: one file for each image, under its own name
    inputs: int = 1  # images that an item is made of
    takes_both: bool = True  # whether originals can lie beside the results
    default_source: Callable[[Settings, int], str] | None = None  # what SRC is when it is left out
    numbers: frozenset[str] = frozenset()  # settings with a text as default that may be a number, too


def makers() -> dict[str, Maker]:
    """All makers by name, in alphabetical order."""
    from cuewise.make import special

    found = {name: of_cue(cue) for name, cue in cues().items()}
    return dict(sorted({**found, **special.makers(found)}.items()))


def maker(name: str) -> Maker:
    """The maker of that name, or an error that lists the names."""
    found = makers()
    if name not in found:
        raise unknown("cannot make", name, found)
    return found[name]


def item_seed(seed: int, kind: str, name: str) -> int:
    """A stable 63-bit hash of the set's seed, the kind and the image's name: the same in any order and process."""
    key = f"{seed}\0{kind}\0".encode() + os.fsencode(name)
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") >> 1


@dataclass(frozen=True)
class CueDraw:
    """Applies a cue operator to the one image of a piece."""

    cue: Cue

    def __call__(self, piece: Piece, settings: Settings, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.cue.name, piece.names[0])
        result, drawn = self.cue.having(**settings).rendered(piece.image(), np.random.default_rng(own))
        yield Picture(result, own, drawn)


def of_cue(cue: Cue) -> Maker:
    """The maker that applies one cue operator to every image."""
    kinds = get_type_hints(type(cue))
    texts = [key for key, default in cue.settings.items() if isinstance(default, str)]
    numbers = [key for key in texts if int in get_args(kinds[key])]
    return Maker(cue.name, cue.summary, cue.settings, CueDraw(cue), numbers=frozenset(numbers))
