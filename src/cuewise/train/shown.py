"""From a configuration to what the learner is shown: the views of each role, their negatives, the facts that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from cuewise.config import Config
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.methods import Setup, ViewSpec
from cuewise.views import (
    RECIPES,
    Negative,
    Recipe,
    Styles,
    View,
    Views,
    augmentation,
    negative_kind,
    negative_settings,
)
from cuewise.views.box_sources import box_source
from cuewise.views.object_crops import CropSettings, ObjectCrops, mean_area
from cuewise.views.partners import made_copies
from cuewise.views.suppress import SuppressSettings, hashable


def build_views(config: Config, data: Dataset) -> Views:
    """The method's views with the configured departures, and the image negatives of the dial."""
    kind, setup, v = config.method_class, config.setup(len(data.classes)), config.views
    styles = Styles(v.styles, v.style_copies, v.style_count)
    positives: list[View] = []
    for spec in kind.shown(setup):
        positives.append(positive_view(spec, config, styles, positives[0].role if positives else None))
    return Views(
        positives,
        build_negatives(config, setup, data),
        styles,
        compared=kind.compared(setup),
        follows=(
            *(name for name in kind.needs if name != "label"),
            *(("trusted",) if setup.correction != "none" else ()),
        ),
        crops=kind.regions(setup, data)
        or (build_crops(config, data, positives[0].recipe.scale[0]) if config.crops else None),
        paired=bool(config.suppress and config.suppress["pairing"] == "image"),
        copies=made_copies(data, config.suppress["copies"], config.suppress["name"])
        if config.suppress and config.suppress["copies"]
        else None,
    )


def build_crops(config: Config, data: Dataset, low: float) -> ObjectCrops:
    """The law of --crops object, with the bound on the crop's area that fits the boxes of this set."""
    s = CropSettings(**{k: v for k, v in config.crops.items() if k != "name"})
    source = box_source(s.boxes or ("given" if data.object_classes else "proposals"), data)
    minimum = s.minimum or config.size
    area, boxed = mean_area(source, data, minimum)
    if not boxed:
        raise UserError(
            f"--crops object: none of the images has a box (crops.boxes={s.boxes}); give another source of boxes"
        )
    return ObjectCrops(
        source,
        s.mode,
        0.2 if s.dilation is None else s.dilation,
        s.reference or "image",
        s.radius,
        minimum,
        min(1.0, low / area),
        area,
    )


def positive_view(spec: ViewSpec, config: Config, styles: Styles, first: str | None) -> View:
    """Augmentations added, dropped, shared with the first view (by views.same, with all views)."""
    same = config.views.same
    recipe = adapt(RECIPES[spec.recipe], config, spec.size or config.size, spec.suppress)
    for name in (*spec.adds, *same):
        recipe = augmentation(name).switched_on(recipe)
    for name in spec.drops:
        recipe = augmentation(name).switched_off(recipe)
    if recipe.style_p:
        recipe = replace(recipe, style_count=len(styles))
    shared = (*spec.shares, *(same if first else ()))
    return View(spec.role, recipe, shared, first or spec.role)


def build_negatives(config: Config, setup: Setup, data: Dataset) -> list[Negative]:
    """One negative per kind and per view that the method makes negatives of."""
    dial, made = setup.negatives, []
    for spec in dial.images:
        kind, settings = negative_kind(spec), negative_settings(spec)
        shared = {option: config.negative_option(option)[1] for option in kind.reads}
        for source in config.method_class.negatives_from:
            built = kind.build(source, dial.count, shared, data, config.seed)
            made.append(replace(built, **settings) if settings else built)
    return made


def adapt(recipe: Recipe, config: Config, size: int, share: float | None = None) -> Recipe:
    """A published recipe at a size, with what --set views.*, --suppress and --no-color-jitter change."""
    v, own = config.views, {f.name for f in fields(Recipe)}
    given: dict[str, Any] = {
        name: tuple(x) if isinstance(x, list) else x
        for name, x in vars(v).items()
        if name in own and x is not None
    }
    recipe = replace(recipe, size=size, **given)
    if v.scale_blur and size < 224:
        recipe = recipe.scaled_blur()
    if config.suppress:
        recipe = suppressing(recipe, config.suppress, v.blur_p, share)
    return recipe.with_color_jitter(config.color_jitter)


def suppressing(
    recipe: Recipe, asked: Mapping[str, Any], blur_p: float | None, share: float | None
) -> Recipe:
    """The policy in every recipe: a share of the views is filtered, half of the others are blurred (0.5 / 0.25 / 0.25).

    share: what the method says of this view instead; such views are a pair that differs in the filter alone.
    """
    policy = {f.name for f in fields(SuppressSettings)} | {"name"}
    if share is not None and (blur_p or asked["pairing"] == "image"):
        what = "views.blur_p" if blur_p else "suppress.pairing=image"
        raise UserError(
            f"{what} has no meaning where the method says itself which views are filtered, and blurs none; leave it out"
        )
    if blur_p is None:
        blur_p = 0.5 if share is None else 0.0
    return replace(
        recipe,
        suppress=asked["name"],
        suppress_p=asked["share"] if share is None else share,
        suppress_options=hashable({k: v for k, v in asked.items() if k not in policy}),
        suppress_copies=len(asked["copies"]),
        blur_p=blur_p,
    )
