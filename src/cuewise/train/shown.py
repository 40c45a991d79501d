"""From a configuration to what the learner is shown: the views of each role, and batches on the device."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from cuewise.config import Config
from cuewise.cues.patches import parse_range
from cuewise.data import Batch
from cuewise.encoders import Encoder
from cuewise.errors import UserError
from cuewise.methods import negative_role
from cuewise.views import RECIPES, PatchNegative, Recipe, View, Views


def build_views(config: Config) -> Views:
    """The method's views with the configured departures, and the image negatives of the dial."""
    kind = config.method_class
    positives = [View(role, adapt(RECIPES[name], config)) for role, name in kind.views.items()]
    negatives = []
    for name in config.negatives_dial().images:
        if name != "patch":
            raise UserError(f"--negatives {name}: not available yet; use --negatives patch")
        size = parse_range(config.patch_size) if config.patch_size else None
        for source in kind.negatives_from:
            negatives.append(
                PatchNegative(
                    role=negative_role(name, source),
                    source=source,
                    patch_size=size,
                    overlap=config.views.overlap,  # type: ignore[arg-type]
                    augment=tuple(config.patch_augment),  # type: ignore[arg-type]
                    count=config.num_negatives,
                )
            )
    return Views(positives, negatives)


def adapt(recipe: Recipe, config: Config) -> Recipe:
    """A published recipe at the run's size, with what --set views.* and --no-color-jitter change."""
    v = config.views
    changes = {
        "scale": v.scale,
        "blur_p": v.blur_p,
        "gray_p": v.gray_p,
        "jitter": v.jitter,
        "rotation_p": v.rotation_p,
    }
    given = {k: tuple(x) if isinstance(x, list) else x for k, x in changes.items() if x is not None}
    recipe = replace(recipe, size=config.size, **given)  # type: ignore[arg-type]
    if v.scale_blur and config.size < 224:
        recipe = recipe.scaled_blur()
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
    return out, batch.label.to(device, non_blocking=True)
