"""All views of one sample by role: positives from recipes, negatives made of them, and the facts that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Sample, Shown
from cuewise.errors import UserError
from cuewise.views.augmentations import augmentation, augmentations
from cuewise.views.facts import facts_in_view
from cuewise.views.negatives import Negative, Origin
from cuewise.views.operations import apply
from cuewise.views.params import Crop, Region, ViewParams
from cuewise.views.recipes import Recipe
from cuewise.views.styles import DRAWN, Styles
from cuewise.views.suppress import COPY
from cuewise.views.textures import MadeCopies

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class View:
    """A positive view: its role, its recipe, and which parameters it copies from an earlier role."""

    role: str
    recipe: Recipe
    copy: tuple[str, ...] = ()  # augmentations, or single fields of ViewParams, e.g. ("color",)
    copy_from: str = "query"


class CropLaw(Protocol):
    """Which region of an image each view's crop is taken from."""

    def draw(self, sample: Sample, rng: np.random.Generator, views: int) -> Sequence[Region | None]:
        """One region per view, None for the whole image; always the same count of random numbers."""
        ...


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
    """Everything drawn for one sample: for each positive view its parameters, for each role of negatives one draw each."""

    positives: dict[str, ViewParams]
    negatives: dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Views:
    """Picklable transform `(sample, rng) -> Shown`: uint8 size×size×3 per positive role, M×size×size×3 per negative.

    Positives are drawn first, in order, and negatives last, from a generator that belongs to this image alone. So
    adding, changing or dropping negatives leaves every positive unchanged, to the bit.

    compared  augmentations: the fact "shared" says for each which later views drew what the first one did, A×(V−1)
    paired    all views of an image are filtered by --suppress together, or none
    copies    filtered copies made beforehand, in place of filtering
    follows   facts that follow each positive view ("boxes", "mask"), as "ROLE.boxes", and facts of the image ("labels",
              "name", "trusted"), under their own names
    crops     crops from boxes of objects; the facts "ROLE.region" and "ROLE.crop" (left, top, right, bottom) say which
    """

    positives: Sequence[View]
    negatives: Sequence[Negative] = field(default=())
    styles: Styles = DRAWN
    compared: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    crops: CropLaw | None = None
    paired: bool = False
    copies: MadeCopies | None = None

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
            if negative.source not in seen:
                raise UserError(
                    f"negative {negative.role!r} is made of {negative.source!r}; there are: {', '.join(seen)}"
                )
        if len(set(self.roles)) != len(self.roles):
            raise UserError(f"two views have the same role; give each its own name: {', '.join(self.roles)}")

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of all views, in the order of the result."""
        return (*(v.role for v in self.positives), *(n.role for n in self.negatives))

    def sample(
        self,
        rng: np.random.Generator,
        height: int,
        width: int,
        regions: Sequence[Region | None] | None = None,
    ) -> ViewsParams:
        """Draw the parameters of all views of a height×width image, each crop from its region."""
        drawn: dict[str, ViewParams] = {}
        for view, region in zip(self.positives, regions or (None,) * len(self.positives)):
            recipe, first = view.recipe, next(iter(drawn.values()), None)
            if self.paired and first is not None and recipe.suppress:
                recipe = _decided(recipe, first.suppress is not None)
            params = recipe.sample(rng, height, width, region)
            if self.paired and first is not None and recipe.suppress:
                params = replace(params, suppress=first.suppress)
            if view.copy:
                params = copied(params, drawn[view.copy_from], view.copy)
            drawn[view.role] = params
        sizes = {view.role: view.recipe.size for view in self.positives}
        return ViewsParams(drawn, {n.role: n.sample(rng, sizes[n.source]) for n in self.negatives})

    def render(self, sample: Sample, params: ViewsParams) -> Shown:
        """Apply drawn parameters: the same sample and parameters give the same views and facts."""
        views: dict[str, Pixels] = {}
        negatives: dict[str, Pixels] = {}
        memo: dict[Any, Any] = {}
        for view in self.positives:
            drawn, size = params.positives[view.role], view.recipe.size
            source = self.styles.before_the_crop(sample.image, drawn.style, sample.name)
            applied = drawn
            if self.copies is not None and drawn.suppress is not None:
                source = self.copies.copy(sample.image, sample.index, int(dict(drawn.suppress.drawn)[COPY]))
                applied = replace(drawn, suppress=None)
            views[view.role] = apply(source, applied, size, self.styles)
            origin = Origin(sample, views[view.role], drawn, memo)
            for negative in self.negatives:  # at once, while the view is still in the processor's cache
                if negative.source == view.role:
                    negatives[negative.role] = _stacked(negative, origin, params.negatives[negative.role])
        made = {n.role: negatives[n.role] for n in self.negatives}
        return Shown({**views, **made}, self.facts(sample, params))

    def facts(self, sample: Sample, params: ViewsParams) -> dict[str, Any]:
        """What is known of the image, as it is in each view."""
        facts: dict[str, Any] = {}
        for view in self.positives:
            drawn = params.positives[view.role]
            for name, value in facts_in_view(sample.facts, drawn, view.recipe.size, self.follows).items():
                facts[f"{view.role}.{name}"] = value
            if self.crops is not None:
                facts[f"{view.role}.region"] = corners(drawn.region)
                facts[f"{view.role}.crop"] = corners(drawn.crop)
        of_image = {"labels": sample.facts.labels, "name": sample.name, "trusted": sample.facts.trusted}
        facts |= {name: value for name, value in of_image.items() if name in self.follows}
        if self.compared:
            facts["shared"] = self._shared(params)
        return facts

    def _shared(self, params: ViewsParams) -> NDArray[np.bool_]:
        """A×(V−1): for each compared augmentation, which later views have the first one's."""
        rows = []
        for name in self.compared:
            first, *others = (augmentation(name).drawn(p) for p in params.positives.values())
            rows.append([other == first for other in others])
        return np.array(rows, bool)

    def drawn(self, sample: Sample, rng: np.random.Generator) -> ViewsParams:
        """Everything that is drawn for a sample, from a generator of its own."""
        regions = None if self.crops is None else self.crops.draw(sample, rng, len(self.positives))
        height, width = sample.image.shape[:2]
        return self.sample(rng, height, width, regions)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        return self.render(sample, self.drawn(sample, rng))

    def warm_up(self) -> None:
        """Run every operation once on an image of noise, so that its kernel is compiled."""
        rng = np.random.default_rng(0)
        noise = Sample(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8))
        positives = self.positives
        if self.copies is not None:  # there are none of noise
            positives = [replace(v, recipe=replace(v.recipe, suppress=None)) for v in positives]
        plain = replace(self, negatives=(), positives=positives, copies=None)
        for _ in range(24):  # enough draws for every operation of a recipe to happen
            plain(noise, rng)
        for negative in self.negatives:
            negative.warm_up()


@cache
def _decided(recipe: Recipe, filtered: bool) -> Recipe:
    """A recipe of which every view is filtered, or none: what the first view of the image drew."""
    return replace(recipe, suppress_p=float(filtered))


def corners(place: Crop | None) -> NDArray[np.float32]:
    """left, top, right, bottom of a rectangle; −1 without."""
    if place is None:
        return np.full(4, -1, np.float32)
    return np.array([place.left, place.top, place.left + place.width, place.top + place.height], np.float32)


def _stacked(negative: Negative, origin: Origin, draws: tuple[Any, ...]) -> Pixels:
    """M×S×S×3; a single negative is not copied."""
    made = [negative.render(origin, drawn, number) for number, drawn in enumerate(draws)]
    return made[0][None] if len(made) == 1 else np.stack(made)
