"""Copies in which the object or its background is changed: they need to know where the object is, and other backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.corruptions import corruption_rng
from cuewise.cues.cutout import GREY, PARTNERS, change_background, hole_of, object_at
from cuewise.data import BrokenImage, Dataset, Image
from cuewise.data.object_masks import ObjectMasks
from cuewise.views import center

CHANGES = ("background", "object")  # of the object or of what is around it; other changes are cue operators
LEAST = 0.005  # of what a model sees: a smaller object cannot be seen
MOST = 0.95  # of what a model sees: a larger box leaves no background
SIDE = 64  # pixels at which objects are measured
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Scene:
    """An image's mask H×W×3 (white on black), and images with their masks whose backgrounds it gets, by kind."""

    mask: Image
    backgrounds: Mapping[str, tuple[Image, Image]]


@dataclass(frozen=True)
class Scenes:
    """The objects of a set. Picklable; what image i gets follows from (seed, its name) alone.

    extent  longer side of each object's box, of the side of what a model sees; NaN where the object cannot be used
    labels  one per image
    unused  (name, why) of images whose object cannot be used
    """

    data: Dataset
    masks: ObjectMasks
    extent: NDArray[np.float64]
    labels: Ids
    unused: tuple[tuple[str, str], ...] = ()
    seed: int = 0

    @property
    def key(self) -> str:
        return f"{self.masks.content_key()} {self.seed}"

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether the object of each image can be seen, and something beside it."""
        return np.isfinite(self.extent)

    def has(self, kind: str) -> NDArray[np.bool_]:
        """Images for which there is a background of that kind."""
        own = np.bincount(self.labels[self.usable], minlength=int(self.labels.max()) + 1)[self.labels]
        return self.usable & (own > 1 if kind == "same" else own < self.usable.sum())

    def attached(self, i: int, kinds: Collection[str]) -> Scene | None:
        """What the changes of image i need, with backgrounds of these kinds; None where its object is not known."""
        if not self.usable[i]:
            return None
        found = {}
        for kind in kinds:
            order = corruption_rng(self.seed, self.data.name(i), f"background {kind}", 0)
            if (pair := self._background(i, kind, int(order.integers(1 << 30)))) is not None:
                found[kind] = pair
        return Scene(self.masks.image(i), found)

    def _background(self, i: int, kind: str, start: int) -> tuple[Image, Image] | None:
        """The first readable image of the same class, or of another one, from a random place on."""
        for j in self._candidates(i, kind, start):
            try:
                return self.data.image(j), self.masks.image(j)
            except BrokenImage:
                continue
        return None

    def _candidates(self, i: int, kind: str, start: int) -> Iterator[int]:
        rows = np.flatnonzero(self.usable & ((self.labels == self.labels[i]) == (kind == "same")))
        rows = rows[rows != i]
        return (int(j) for j in np.roll(rows, -(start % max(1, len(rows)))))


def scenes_of(data: Dataset, masks: ObjectMasks, seed: int) -> Scenes:
    """The objects of a labelled set, measured where a model sees them."""
    assert data.labels is not None
    extent, why = np.full(len(masks), np.nan), []
    for i in range(len(masks)):
        try:
            seen = center(masks.image(i), SIDE)[..., 0] >= GREY
        except BrokenImage as error:
            why.append((error.name, error.why))
            continue
        box = float(hole_of(seen).mean())
        if seen.mean() >= LEAST and box <= MOST:
            extent[i] = max(np.ptp(np.flatnonzero(seen.any(axis))) + 1 for axis in (0, 1)) / SIDE
        else:
            covers = f"its object covers {100 * seen.mean():.1f} % of the image, the box around it {100 * box:.0f} %"
            why.append((masks.name(i), covers))
    return Scenes(data, masks, extent, data.labels, tuple(why), seed)


def scene_copy(
    view: Image, cue: str, settings: Mapping[str, Any], scene: Scene | None, see: Callable[[Image], Image]
) -> Image:
    """The changed copy of a view; `see` makes a view of an image. Without what it takes the view stays unchanged."""
    kind = settings.get("kind", "")
    if scene is None or (kind in PARTNERS and kind not in scene.backgrounds):
        return view
    mask = see(scene.mask)[..., 0] >= GREY
    if cue == "object":
        return object_at(view, mask, (settings["down"], settings["right"]), settings.get("share"))
    if kind not in PARTNERS:
        return change_background(view, mask, kind)
    image, other = map(see, scene.backgrounds[kind])
    return change_background(view, mask, kind, (image, other[..., 0] >= GREY))
