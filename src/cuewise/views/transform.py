"""All views of one image by role: positives from recipes, negatives cut from one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from cuewise.cues import patches
from cuewise.errors import UserError
from cuewise.views.augmentations import augmentation, augmentations
from cuewise.views.negative import Negative
from cuewise.views.operations import apply
from cuewise.views.params import ViewParams
from cuewise.views.recipes import Recipe
from cuewise.views.styles import DRAWN, Styles
from cuewise.views.textures import TextureNegative, moved

Pixels = NDArray[np.uint8]
RAW = "raw"  # as a source of negatives: the image itself, before any view


@dataclass(frozen=True)
class View:
    """A positive view: its role, its recipe, and which parameters it copies from an earlier role."""

    role: str
    recipe: Recipe
    copy: tuple[str, ...] = ()  # augmentations, or single fields of ViewParams, e.g. ("color",)
    copy_from: str = "query"


@dataclass(frozen=True)
class PatchNegative(Negative):
    """A negative of shuffled patches, cut from the view of `source` (or from the raw image)."""

    role: str = "negative"
    source: str = "query"
    patch_size: tuple[int, int] | None = None  # both ends inclusive; None: `patches.default_range`
    overlap: patches.Overlap = "allow"
    augment: tuple[patches.Augment, ...] = ()
    count: int = 1


FIELDS = {f.name for f in fields(ViewParams)}


def copied(params: ViewParams, source: ViewParams, names: Sequence[str]) -> ViewParams:
    """`params` with what `names` say taken from `source`: augmentations, whole units, or else single fields."""
    units = augmentations()
    for name in names:
        if name in FIELDS and name not in units:
            params = replace(params, **{name: getattr(source, name)})
        else:
            params = augmentation(name).copied(params, source)
    return params


@dataclass(frozen=True)
class ViewsParams:
    """Everything drawn for one image, by role (for textures nothing is: they copy their source's parameters)."""

    positives: dict[str, ViewParams]
    negatives: dict[str, patches.PatchParams]


@dataclass(frozen=True)
class Views:
    """Picklable `(image, rng, index) -> {role: uint8 size×size×3}`.

    Positives are drawn first, in order, and negatives last, from a generator that belongs to this image alone. So
    adding, changing or dropping negatives leaves every positive as it was, to the bit.
    """

    positives: Sequence[View]
    negatives: Sequence[PatchNegative | TextureNegative] = field(default=())
    styles: Styles = DRAWN
    equal: Sequence[
        str
    ] = ()  # augmentations: "equal:NAME" tells which later views drew what the first one did

    def __post_init__(self) -> None:
        seen: list[str] = []
        for view in self.positives:
            for name in set(view.copy) - FIELDS:
                augmentation(name)  # or an error that lists them
            if view.copy and view.copy_from not in seen:
                raise UserError(
                    f"view {view.role!r} copies from {view.copy_from!r}, which must come before it"
                )
            seen.append(view.role)
        for negative in self.negatives:
            known_sources = (*seen, RAW) if isinstance(negative, PatchNegative) else seen
            if negative.source not in known_sources:
                raise UserError(
                    f"negative {negative.role!r} is cut from {negative.source!r}; there are: {seen}"
                )
        if len(set(self.roles)) != len(self.roles):
            raise UserError(f"two views have the same role; give each its own name: {', '.join(self.roles)}")

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of all views, in the order of the result."""
        return (*(v.role for v in self.positives), *(r for n in self.negatives for r in n.roles))

    def sample(self, rng: np.random.Generator, height: int, width: int) -> ViewsParams:
        """Draw the parameters of all views of a height×width image."""
        drawn: dict[str, ViewParams] = {}
        for view in self.positives:
            params = view.recipe.sample(rng, height, width)
            if view.copy:
                params = copied(params, drawn[view.copy_from], view.copy)
            drawn[view.role] = params
        if not self.negatives:
            return ViewsParams(drawn, {})
        sizes = {view.role: view.recipe.size for view in self.positives}
        first = self.positives[0].recipe.size
        cuts: dict[str, patches.PatchParams] = {}
        for negative in self.negatives:
            if not isinstance(negative, PatchNegative):
                continue
            size = sizes.get(negative.source, first)
            h, w = (height, width) if negative.source == RAW else (size, size)
            for role in negative.roles:
                cuts[role] = patches.sample(
                    rng, h, w, size, negative.patch_size, overlap=negative.overlap, augment=negative.augment
                )
        return ViewsParams(drawn, cuts)

    def render(self, image: Pixels, params: ViewsParams, index: int = 0) -> dict[str, Pixels]:
        """Apply drawn parameters: the same image and parameters give the same views.

        index: the image's number in the training set, by which made textures are found.
        """
        views: dict[str, Pixels] = {}
        negatives: dict[str, Pixels] = self._cuts(image, RAW, params)
        for view in self.positives:
            drawn = params.positives[view.role]
            source = self.styles.before_the_crop(image, drawn.style, index)
            views[view.role] = apply(source, drawn, view.recipe.size, self.styles)
            # at once, while the view is still in the processor's cache
            negatives |= self._cuts(views[view.role], view.role, params)
        negatives |= self._textures(image, params, index)
        shown = {role: views[role] if role in views else negatives[role] for role in self.roles}
        return shown | {f"equal:{name}": self._equal(name, params) for name in self.equal}

    def _equal(self, name: str, params: ViewsParams) -> Pixels:
        """For each view but the first, 1 where it has the first one's augmentation `name`."""
        first, *others = (augmentation(name).drawn(p) for p in params.positives.values())
        return np.array([other == first for other in others], np.uint8)

    def _cuts(self, pixels: Pixels, source: str, params: ViewsParams) -> dict[str, Pixels]:
        cut = [n for n in self.negatives if isinstance(n, PatchNegative) and n.source == source]
        return {role: patches.apply(pixels, params.negatives[role]) for n in cut for role in n.roles}

    def _textures(self, image: Pixels, params: ViewsParams, index: int) -> dict[str, Pixels]:
        out: dict[str, Pixels] = {}
        sizes = {view.role: view.recipe.size for view in self.positives}
        loaded: dict[int, Pixels] = {}  # negatives of several views share the textures of the image
        for negative in self.negatives:
            if isinstance(negative, TextureNegative):
                for number, role in enumerate(negative.roles):
                    if number not in loaded:
                        loaded[number] = negative.textures.texture(image, index, number)
                    texture = loaded[number]
                    view = moved(params.positives[negative.source], image.shape, texture.shape)
                    out[role] = apply(texture, view, sizes[negative.source])
        return out

    def __call__(self, image: Pixels, rng: np.random.Generator, index: int) -> dict[str, Pixels]:
        height, width = image.shape[:2]
        return self.render(image, self.sample(rng, height, width), index)

    def warm_up(self) -> None:
        """Run every operation once on an image of noise, so that its kernel is compiled."""
        rng = np.random.default_rng(0)
        noise = rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)
        plain = replace(self, negatives=[n for n in self.negatives if isinstance(n, PatchNegative)])
        for _ in range(24):  # enough draws for every operation of a recipe to happen
            plain(noise, rng, 0)
        for negative in self.negatives:
            if isinstance(negative, TextureNegative):
                negative.textures.warm_up()
