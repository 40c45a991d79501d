"""`loop.decode=reduced`: the smallest scale at which an image can be decoded without any crop losing pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cuewise.data import BrokenImage, Dataset, SmallestCrop
from cuewise.data.decode import reduction
from cuewise.data.headers import read_jpeg_header
from cuewise.errors import UserError
from cuewise.views.recipes import Recipe
from cuewise.views.transform import Views

WHOLE = {  # of a recipe: what works on the whole image, in its own pixels, and how it is asked for
    "suppress": "--suppress filters whole images",
    "style_p": "styles (views.style_p) are made of whole images",
}


def smallest_crops(views: Views) -> tuple[SmallestCrop, ...]:
    """One per view; refused where anything but crops is asked of the images."""
    if views.crops is not None:
        raise _refusal("--crops object has boxes in the pixels of whole images")
    if {"boxes", "mask"} & set(views.follows):
        raise _refusal("boxes and masks are in the pixels of whole images")
    for view in views.positives:
        for name, why in WHOLE.items():
            if getattr(view.recipe, name):
                raise _refusal(why)
    for negative in views.negatives:
        if negative.of_image:
            raise _refusal(f"--negatives {negative.name} are made of whole images")
    return tuple(of_recipe(view.recipe) for view in views.positives)


def of_recipe(recipe: Recipe) -> SmallestCrop:
    """Crops have at least scale[0] of the area, and their sides differ by no more than the ratio."""
    longest = max(recipe.ratio[1], 1 / recipe.ratio[0])
    # where no crop fits the image, its centre is taken, with the nearest ratio that is allowed
    narrowest = min(1.0, recipe.ratio[1], 1 / recipe.ratio[0])
    return SmallestCrop(recipe.size, recipe.scale[0] / longest, narrowest)


def reduced(data: Dataset, views: Views) -> Dataset:
    """The set whose JPEGs are reduced as far as these views allow; refused where that is not at all."""
    smaller = data.reduced_for(smallest_crops(views))
    if max(found := reductions(smaller), default=1) == 1:
        side = max(math.ceil(2 * crop.side / math.sqrt(crop.share)) for crop in smaller.crops)
        raise UserError(
            f"loop.decode=reduced changes nothing: none of {len(found)} sampled images is a JPEG large enough "
            f"for these crops (a square one from {side} × {side} pixels on); leave it out"
        )
    return smaller


def reductions(data: Dataset, look: int = 32) -> list[int]:
    """By how much some images of the set are reduced, evenly spaced over it; 1 also for those that are no JPEGs."""
    found = []
    for i in np.unique(np.linspace(0, len(data) - 1, look).astype(int)).tolist():
        try:
            header = read_jpeg_header(data.stored(i) or b"")
        except BrokenImage:
            continue  # the loader reports it
        found.append(reduction(header, data.crops) if header and header.plain else 1)
    return found


def reduction_line(found: Sequence[int]) -> str:
    """What a run says of them at its start."""
    parts = [f"{found.count(n)} at 1/{n}" for n in (8, 4, 2) if n in found]
    whole = f", {found.count(1)} in full" if 1 in found else ""
    return f"JPEGs are reduced while they are decoded: of {len(found)} images checked, {', '.join(parts)} of their side{whole}"


def _refusal(why: str) -> UserError:
    return UserError(f"loop.decode=reduced: {why}; leave loop.decode out")
