"""From a configuration to what the learner is shown: the views of each role, and batches on the device."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cuewise.config import Config
from cuewise.cues.patches import parse_range
from cuewise.data import Batch, Dataset
from cuewise.encoders import Encoder
from cuewise.methods import negative_role
from cuewise.views import (
    RECIPES,
    PatchNegative,
    Recipe,
    Styles,
    SynthesisedTextures,
    TextureNegative,
    Textures,
    View,
    Views,
    augmentation,
    made_textures,
)
from cuewise.views.suppress import SHARE


def build_views(config: Config, data: Dataset) -> Views:
    """The method's views with the configured departures, and the image negatives of the dial."""
    kind = config.method_class
    styles = styles_of(config, data)
    positives = positive_views(config, styles)
    negatives: list[PatchNegative | TextureNegative] = []
    for name in config.negatives_dial().images:
        roles = {source: negative_role(name, source) for source in kind.negatives_from}
        if name == "patch":
            negatives += [patch_negative(config, role, source) for source, role in roles.items()]
        else:
            found = textures(config, data)
            negatives += [
                TextureNegative(found, role, source, config.num_negatives) for source, role in roles.items()
            ]
    equal = config.left_out if config.settings.get("mask_equal") else ()
    return Views(positives, negatives, styles, equal)


def positive_views(config: Config, styles: Styles) -> list[View]:
    """What the method shows: augmentations added, dropped, shared with the first view (by views.same, with all views)."""
    views: list[View] = []
    for shown in config.method_class.shown(config.left_out):
        recipe = adapt(RECIPES[shown.recipe], config)
        for name in (*shown.adds, *config.views.same):
            recipe = augmentation(name).switched_on(recipe)
        for name in shown.drops:
            recipe = augmentation(name).switched_off(recipe)
        if recipe.style_p:
            recipe = replace(recipe, style_count=len(styles))
        shared = (*shown.shares, *(config.views.same if views else ()))
        views.append(View(shown.role, recipe, shared, views[0].role if views else shown.role))
    return views


def styles_of(config: Config, data: Dataset) -> Styles:
    """Where the styles of texture randomisation come from."""
    v = config.views
    return Styles(v.styles, v.style_copies, v.style_count, data.name)


def patch_negative(config: Config, role: str, source: str) -> PatchNegative:
    """Patch negatives of the view `source` as configured."""
    return PatchNegative(
        role=role,
        source=source,
        patch_size=parse_range(config.patch_size) if config.patch_size else None,
        overlap=config.views.overlap,  # type: ignore[arg-type]
        augment=tuple(config.patch_augment),  # type: ignore[arg-type]
        count=config.num_negatives,
    )


def textures(config: Config, data: Dataset) -> Textures:
    """Made textures where --texture-data names them, else synthesised while training and kept on disk."""
    if config.texture_data:
        return made_textures(data, config.texture_data, config.num_negatives)
    return SynthesisedTextures(config.seed)


def adapt(recipe: Recipe, config: Config) -> Recipe:
    """A published recipe at the run's size, with what --set views.*, --suppress and --no-color-jitter change."""
    v = config.views
    changes = {
        "scale": v.scale,
        "blur_p": v.blur_p,
        "gray_p": v.gray_p,
        "jitter": v.jitter,
        "rotation_p": v.rotation_p,
        "style_p": v.style_p,
        "style_strength": v.style_strength,
    }
    given = {k: tuple(x) if isinstance(x, list) else x for k, x in changes.items() if x is not None}
    recipe = replace(recipe, size=config.size, **given)  # type: ignore[arg-type]
    if v.scale_blur and config.size < 224:
        recipe = recipe.scaled_blur()
    if config.suppress:
        blur_p = 0.5 if v.blur_p is None else v.blur_p  # in whatever recipe: 0.5 / 0.25 / 0.25
        recipe = replace(recipe, suppress=config.suppress, suppress_p=SHARE, blur_p=blur_p)
    return recipe.with_color_jitter(config.color_jitter)


def to_device(
    batch: Batch, views: Views, encoder: Encoder, device: torch.device
) -> tuple[dict[str, Tensor], Tensor]:
    """Normalised images by role, B×3×H×W and channels last; negatives of one role stacked to B×M×3×H×W."""
    out: dict[str, Tensor] = {}
    for view in views.positives:
        out[view.role] = encoder.normalise(batch.views[view.role].to(device, non_blocking=True))
    for negative in views.negatives:
        stack = torch.stack([batch.views[role] for role in negative.roles], dim=1)  # B×M×H×W×3
        flat = encoder.normalise(stack.flatten(0, 1).to(device, non_blocking=True))
        out[negative.role] = flat.unflatten(0, stack.shape[:2])
    out |= {f"equal:{name}": batch.views[f"equal:{name}"].to(device) for name in views.equal}
    return out, batch.label.to(device, non_blocking=True)
