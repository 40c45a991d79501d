"""Copies of an image made in memory: which change, at which input size, with which random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.corruptions import corruption_rng, variants
from cuewise.cues.cue import Cue
from cuewise.cues.registry import cue
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
AS_IT_IS = Change("", (("kept", "answers"),))  # the view stays as it is; its answer is kept, not its features


def change(cue: str, **settings: Any) -> Change:
    """Change("lowpass", (("keep", 0.5),)) as change("lowpass", keep=0.5)."""
    return Change(cue, tuple(settings.items()))


@dataclass(frozen=True, order=True)
class Input:
    """What a model takes: the side of its input and the filter that resizes to it."""

    size: int
    interpolation: str = "bilinear"

    @staticmethod
    def of(encoder: Encoder) -> Input:
        bicubic = encoder.card.interpolation == "bicubic"
        return Input(encoder.card.size, "bicubic" if bicubic else "bilinear")

    @property
    def key(self) -> str:
        return f"{self.size} {self.interpolation}"


@dataclass(frozen=True)
class Copies:
    """Every change of an image for every input size, from one decoding: {input: V×S×S×3}.

    The random numbers of a copy follow from (seed, name of the image, change) alone.
    """

    inputs: tuple[Input, ...]
    changes: tuple[Change, ...] = (CLEAN,)
    seed: int = 0

    @property
    def count(self) -> int:
        """Views per image."""
        return len(self.changes)

    @property
    def asked(self) -> tuple[Change, ...]:
        """The changes whose copies are answered; of clean views the features are kept."""
        return tuple(c for c in self.changes if c != CLEAN)

    @property
    def key(self) -> str:
        return "\0".join([str(self.seed), *(c.key for c in self.changes)])

    def views(self, image: Pixels, name: str, number: int = 0) -> dict[str, Pixels]:
        """All copies of one image; `number` is its place in the set."""
        return {i.key: np.stack(self._copies(image, name, i)) for i in self.inputs}

    def _copies(self, image: Pixels, name: str, taken: Input) -> list[Pixels]:
        view = evaluation_view(image, taken.size, taken.interpolation)
        corrupted = corrupted_copies(view, self.changes, name, self.seed)
        return [self._copy(view, c, name) if c not in corrupted else corrupted[c] for c in self.changes]

    def _copy(self, view: Pixels, c: Change, name: str) -> Pixels:
        if not c.cue:
            return view
        return operator(c.cue)(view, corruption_rng(self.seed, name, c.key, 0), **dict(c.settings))


@lru_cache(maxsize=64)
def operator(name: str) -> Cue:
    """The cue of that name, looked up once."""
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
