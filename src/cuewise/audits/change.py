"""Copies of an image made in memory: which change, at which input size, with which random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.scenes import CHANGES, Scene, Scenes, scene_copy
from cuewise.cues.corruptions import corruption_rng, variants
from cuewise.cues.cue import Cue
from cuewise.cues.cutout import PARTNERS
from cuewise.cues.registry import cue
from cuewise.encoders.embed import evaluation_view
from cuewise.encoders.encoder import Encoder

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Change:
    """A cue operator with its settings, or a change of the object or its background; without one the view stays unchanged."""

    cue: str = ""
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        return " ".join([self.cue or "clean", *(f"{k}={v}" for k, v in self.settings)])


CLEAN = Change()
AS_IT_IS = Change(
    "", (("kept", "answers"),)
)  # the view stays unchanged; its answer is kept, not its features


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

    def see(self, image: Pixels) -> Pixels:
        """What the model sees of an image."""
        return evaluation_view(image, self.size, self.interpolation)


@dataclass(frozen=True)
class Copies:
    """Every change of an image for every input size, from one decoding: {input: V×S×S×3}.

    The random numbers of a copy follow from (seed, name of the image, change) alone. `scenes` says where objects are.
    """

    inputs: tuple[Input, ...]
    changes: tuple[Change, ...] = (CLEAN,)
    seed: int = 0
    scenes: Scenes | None = None

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
        objects = [self.scenes.key] if self.scenes and self._objects else []
        return "\0".join([str(self.seed), *(c.key for c in self.changes), *objects])

    @property
    def _objects(self) -> list[Change]:
        """Changes of the object or of its background."""
        return [c for c in self.changes if c.cue in CHANGES]

    def attached(self, number: int) -> Scene | None:
        """What the copies of an image take beside its pixels; `number` is its place in the set."""
        if self.scenes is None or not self._objects:
            return None
        kinds = {str(dict(c.settings).get("kind")) for c in self._objects}
        return self.scenes.attached(number, sorted(kinds & set(PARTNERS)))

    def views(
        self, image: Pixels, name: str, number: int = 0, scene: Scene | None = None
    ) -> dict[str, Pixels]:
        """All copies of one image; `scene` is what `attached` gives."""
        return {i.key: np.stack(self._copies(image, name, i, scene)) for i in self.inputs}

    def _copies(self, image: Pixels, name: str, taken: Input, scene: Scene | None) -> list[Pixels]:
        view = taken.see(image)
        found = corrupted_copies(view, self.changes, name, self.seed)
        found |= {c: scene_copy(view, c.cue, dict(c.settings), scene, taken.see) for c in self._objects}
        return [self._copy(view, c, name) if c not in found else found[c] for c in self.changes]

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
        corruptions=list(dict.fromkeys(c for c, _ in wanted)),
        severities=list(dict.fromkeys(s for _, s in wanted)),
        scale_to_image=True,
    )
    return {wanted[c, s]: image for c, s, image in found if (c, s) in wanted}
