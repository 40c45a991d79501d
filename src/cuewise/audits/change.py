"""Copies of an image made in memory: which change, at which size, with which random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.corruptions import corruption_rng, variants
from cuewise.cues.registry import Cue, cue
from cuewise.data import Dataset
from cuewise.encoders.embed import evaluation_view
from cuewise.encoders.encoder import Encoder

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Change:
    """A cue operator with its settings; without one the view stays as it is."""

    cue: str = ""
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        return " ".join([self.cue or "clean", *(f"{k}={v}" for k, v in self.settings)])


CLEAN = Change()


def change(cue: str, **settings: Any) -> Change:
    """Change("lowpass", (("keep", 0.5),)) as change("lowpass", keep=0.5)."""
    return Change(cue, tuple(settings.items()))


@dataclass(frozen=True, order=True)
class Eye:
    """How a model sees an image: the side of its input and the filter that resizes to it."""

    size: int
    interpolation: str = "bilinear"

    @staticmethod
    def of(encoder: Encoder) -> Eye:
        bicubic = encoder.card.interpolation == "bicubic"
        return Eye(encoder.card.size, "bicubic" if bicubic else "bilinear")

    @property
    def key(self) -> str:
        return f"{self.size} {self.interpolation}"


@dataclass(frozen=True)
class Rendering:
    """Picklable `(image, rng, index) → {eye: V×S×S×3}`: every change of an image for every eye from one decoding.

    The random numbers of a copy follow from (seed, name of the image, change) alone.
    """

    eyes: tuple[Eye, ...]
    changes: tuple[Change, ...]
    seed: int
    data: Dataset | None = None  # tells the names of images

    def __call__(self, image: Pixels, rng: np.random.Generator, index: int) -> dict[str, Pixels]:
        assert self.data is not None
        return self.views(image, self.data.name(index))

    def views(self, image: Pixels, name: str) -> dict[str, Pixels]:
        """All copies of one image."""
        return {eye.key: np.stack(self._copies(image, name, eye)) for eye in self.eyes}

    def _copies(self, image: Pixels, name: str, eye: Eye) -> list[Pixels]:
        view = evaluation_view(image, eye.size, eye.interpolation)
        corrupted = corrupted_copies(view, self.changes, name, self.seed)
        return [self._copy(view, c, name) if c not in corrupted else corrupted[c] for c in self.changes]

    def _copy(self, view: Pixels, c: Change, name: str) -> Pixels:
        if not c.cue:
            return view
        return operator(c.cue)(view, corruption_rng(self.seed, name, c.key, 0), **dict(c.settings))

    def warm_up(self) -> None:
        """Compile what the changes need, on noise."""
        noise = np.random.default_rng(0).integers(0, 256, (96, 80, 3), dtype=np.uint8)
        self.views(noise, "noise")


@lru_cache(maxsize=64)
def operator(name: str) -> Cue:
    """The cue of that name; the registry looks through its room each time."""
    return cue(name)


def corrupted_copies(view: Pixels, changes: Sequence[Change], name: str, seed: int) -> dict[Change, Pixels]:
    """All corruptions among the changes at once: what they share is computed once."""
    wanted = {
        (s["corruption"], s["severity"]): c
        for c in changes
        if c.cue == "corrupted"
        for s in [dict(c.settings)]
    }
    if not wanted:
        return {}
    found = variants(
        view,
        seed=seed,
        name=name,
        corruptions=_distinct(k[0] for k in wanted),
        severities=_distinct(k[1] for k in wanted),
        scale_to_image=True,
    )
    return {wanted[c, s]: image for c, s, image in found if (c, s) in wanted}


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
