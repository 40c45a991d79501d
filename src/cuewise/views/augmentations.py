"""Augmentations by name: what a method can leave out, share between views or add, each as one unit.

A built-in augmentation is some fields of ViewParams and the probabilities of a Recipe that draw them. A user's own brings
functions instead: `draw(rng)` gives a plain value (None: leave this view alone), `apply(view, value)` changes the view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError, unknown
from cuewise.registry import Registry, import_users_module, instances_of, outside
from cuewise.views.params import ViewParams

if TYPE_CHECKING:
    from cuewise.views.recipes import Recipe

Pixels = NDArray[np.uint8]
Draw = Callable[[np.random.Generator], Any]
Apply = Callable[[Pixels, Any], Pixels]


@dataclass(frozen=True)
class Augmentation:
    """One unit: `fields` of ViewParams and the `probabilities` that switch it on; or the user's `draw` and `apply`."""

    name: str
    summary: str
    fields: tuple[str, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    draw: Draw | None = None
    apply: Apply | None = None

    @property
    def own(self) -> bool:
        """Whether a user brought it."""
        return self.draw is not None

    def switched_on(self, recipe: Recipe) -> Recipe:
        """The recipe with this augmentation, at its published probability where the recipe has none of it."""
        if self.own:
            return recipe if self.name in recipe.own else replace(recipe, own=(*recipe.own, self.name))
        if not self.probabilities or any(getattr(recipe, p) for p in self.probabilities):
            return recipe
        return replace(recipe, **self.probabilities)  # type: ignore[arg-type]

    def switched_off(self, recipe: Recipe) -> Recipe:
        """The recipe without this augmentation."""
        if self.own:
            return replace(recipe, own=tuple(n for n in recipe.own if n != self.name))
        if not self.probabilities:
            raise UserError(f"{self.name} cannot be removed: every view has one")
        return replace(recipe, **dict.fromkeys(self.probabilities, 0.0))  # type: ignore[arg-type]

    def drawn(self, params: ViewParams) -> tuple[Any, ...]:
        """What was drawn for this unit: equal values are equal augmentations."""
        if self.own:
            return (dict(params.own).get(self.name),)
        return tuple(getattr(params, name) for name in self.fields)

    def copied(self, params: ViewParams, source: ViewParams) -> ViewParams:
        """`params` with this unit, all of it and nothing else, taken from `source`."""
        if self.own:
            values = dict(params.own) | {self.name: dict(source.own).get(self.name)}
            return replace(params, own=tuple(values.items()))
        return replace(params, **{name: getattr(source, name) for name in self.fields})


COLOR = Augmentation(
    "color", "colour jitter and greyscale", ("jitter", "gray"), {"jitter_p": 0.8, "gray_p": 0.2}
)
ROTATION = Augmentation("rotation", "turns of 90, 180 or 270 degrees", ("rotation",), {"rotation_p": 0.5})
TEXTURE = Augmentation("texture", "the texture of a random style", ("style",), {"style_p": 0.5})
BLUR = Augmentation(
    "blur", "Gaussian blur (and --suppress)", ("blur", "suppress"), {"blur_p": 0.5, "suppress_p": 0.0}
)
FLIP = Augmentation("flip", "mirrored left to right", ("flip",), {"flip_p": 0.5})
SOLARIZE = Augmentation("solarize", "bright values inverted", ("solarize",), {"solarize_p": 0.2})
CROP = Augmentation("crop", "the random-resized crop", ("crop", "region"))
_AUGMENTATIONS = {a.name: a for a in (COLOR, ROTATION, TEXTURE, BLUR, FLIP, SOLARIZE, CROP)}
AUGMENTATIONS = Registry[Augmentation]("augmentation", "cuewise.views", instances_of(Augmentation))
RESERVED = ("v", "z0", "all")  # names of embedding spaces


def register_augmentation(name: str, summary: str, *, draw: Draw, apply: Apply) -> Augmentation:
    """List an augmentation of your own: it can be left out and copied like any other.

    draw   (rng) -> a plain value, or None to leave the view alone; equal values mean equal augmentations
    apply  (uint8 S×S×3, value) -> the same kind; it is applied to the flipped crop, before the colours
    """
    taken = [*RESERVED, *(n for n, known in _AUGMENTATIONS.items() if not known.own)]
    if not name.replace("-", "").replace("_", "").isalnum() or name in taken:
        raise UserError(
            f"augmentation {name!r}: take letters, digits, - and _, and not one of {', '.join(taken)}"
        )
    _AUGMENTATIONS[name] = Augmentation(name, summary, draw=draw, apply=apply)
    return _AUGMENTATIONS[name]


def augmentations() -> dict[str, Augmentation]:
    """All augmentations by name."""
    return dict(_AUGMENTATIONS)


def augmentation(name: str) -> Augmentation:
    """The augmentation of that name, of an entry point, or of `package.module:Name`.

    Name is an Augmentation in that module, or what the module registers one as.
    """
    module, _, short = name.rpartition(":")
    if short not in _AUGMENTATIONS:
        found: Any = None
        if module:
            found = vars(import_users_module(module, f"the augmentation {name}")).get(short)
        elif short in (points := outside("augmentations")):
            found = points[short].load()
        if isinstance(found, Augmentation):
            short = found.name
            _AUGMENTATIONS.setdefault(short, found)
    if short not in _AUGMENTATIONS:
        raise unknown(
            "no augmentation",
            name,
            [*_AUGMENTATIONS, *outside("augmentations")],
            "; register your own with cuewise.views.register_augmentation and name it package.module:NAME",
        )
    return _AUGMENTATIONS[short]


def apply_own(view: Pixels, params: ViewParams) -> Pixels:
    """The user's augmentations that were drawn for this view, in their order."""
    for name, value in params.own:
        operation = _AUGMENTATIONS[name].apply
        if value is None or operation is None:
            continue
        changed = operation(view, value)
        if changed.dtype != np.uint8 or changed.shape != view.shape:
            raise UserError(
                f"augmentation {name!r} gave {changed.dtype} {changed.shape}; it must give uint8 {view.shape}"
            )
        view = np.ascontiguousarray(changed)
    return view
