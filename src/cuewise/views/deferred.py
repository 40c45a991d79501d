"""`loop.views=device`: loader processes decode and draw, the device that trains renders.

What is drawn is what the host would draw, number for number; pixels agree within one grey level (see batched.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cuewise.cues.diffusion import Diffusion
from cuewise.data import Batch, Sample, Shown
from cuewise.errors import UserError
from cuewise.views import batched
from cuewise.views.operations import ORDERS, hue_shift
from cuewise.views.params import ViewParams
from cuewise.views.suppress import suppressor
from cuewise.views.transform import Views

SOURCE, DRAWN = "deferred.source", "deferred.drawn"


class DrawnViews(NamedTuple):
    """What was drawn for one role of a batch, in host memory; see ViewParams."""

    crop: Tensor  # N×4: top, left, height, width
    flip: Tensor  # N
    order: Tensor  # N×4 codes of colour operations
    factors: Tensor  # N×3: brightness, contrast, saturation
    shift: Tensor  # N, of the hue
    gray: Tensor  # N
    blur: Tensor  # N, 0 for none
    solarize: Tensor  # N, 256 for none
    quarters: Tensor  # N
    steps: Tensor  # N, of diffusion, 0 for none


class DrawnBatch(NamedTuple):
    """Everything a device needs beside the images."""

    sizes: Tensor  # N×2: height, width
    views: dict[str, DrawnViews]
    negatives: dict[str, Any]  # role → what the kind packed


@dataclass(frozen=True)
class DeferredViews:
    """The transform of a loader whose views are rendered elsewhere: it gives the original image, and what was drawn."""

    views: Views

    def __post_init__(self) -> None:
        for view in self.views.positives:
            recipe = view.recipe
            if recipe.style_p:
                raise _refusal("styles (views.style_p) are made on the host")
            if recipe.own:
                raise _refusal(f"{recipe.own[0]} is an augmentation of numpy arrays")
            if recipe.suppress:
                cue = suppressor(recipe.suppress, recipe.suppress_options)
                if self.views.copies is not None or not isinstance(cue, Diffusion):
                    raise _refusal(
                        f"--suppress {recipe.suppress} is made on the host; anisotropic and robust are not"
                    )
                if getattr(cue, "mode", "channel") != "channel":
                    raise _refusal(f"suppress.mode={getattr(cue, 'mode', '')} is made on the host")
        for negative in self.views.negatives:
            if not negative.on_device:
                raise _refusal(f"--negatives {negative.name} are made on the host")

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        params = self.views.drawn(sample, rng)
        return Shown({}, {**self.views.facts(sample, params), SOURCE: sample.image, DRAWN: params})

    def finish(self, batch: Batch) -> Batch:
        """One padded tensor of images, and tensors of what was drawn; in the process that made the batch."""
        images, drawn = batch.facts[SOURCE], batch.facts[DRAWN]
        shapes = np.array([np.shape(image)[:2] for image in images])
        padded = torch.zeros(len(shapes), *shapes.max(0).tolist(), 3, dtype=torch.uint8)
        for place, image in zip(padded, images):
            height, width = image.shape[:2]
            place[:height, :width] = torch.as_tensor(np.ascontiguousarray(image))
        roles = [view.role for view in self.views.positives]
        batch.facts[SOURCE] = padded
        batch.facts[DRAWN] = DrawnBatch(
            torch.from_numpy(shapes),
            {role: packed_views([d.positives[role] for d in drawn]) for role in roles},
            {n.role: n.packed([p for d in drawn for p in d.negatives[n.role]]) for n in self.views.negatives},
        )
        return batch

    def render(self, batch: Batch, device: torch.device) -> Batch:
        """The batch with its views, uint8 on the device."""
        facts = dict(batch.facts)
        source, drawn = facts.pop(SOURCE).to(device, non_blocking=True), facts.pop(DRAWN)
        views: dict[str, Tensor] = {}
        negatives: dict[str, Tensor] = {}
        for view in self.views.positives:
            own = drawn.views[view.role]
            shown = self.rendered(source, drawn.sizes, own, view.recipe.size, view.recipe)
            views[view.role] = shown.to(torch.uint8)
            for negative in self.views.negatives:
                if negative.source == view.role:
                    of = shown.repeat_interleave(negative.count, 0)
                    made = negative.render_packed(of, drawn.negatives[negative.role])
                    negatives[negative.role] = made.to(torch.uint8).unflatten(0, (len(shown), negative.count))
        made_of = {n.role: negatives[n.role] for n in self.views.negatives}
        return replace(batch, views={**views, **made_of}, facts=facts)

    def rendered(self, source: Tensor, sizes: Tensor, d: DrawnViews, size: int, recipe: Any) -> Tensor:
        """One role: N×S×S×3 whole grey levels as float32."""
        device = source.device
        if (rows := batched.rows_where(d.steps > 0, device)) is not None:
            some, source = d.steps > 0, source.clone()
            settings = suppressor(recipe.suppress, recipe.suppress_options).settings
            option = settings.get("option", 3)  # robust has no other
            source[rows] = batched.diffused(
                source[rows], sizes[some], d.steps[some], settings["kappa"], settings["gamma"], option
            )
        x = batched.cropped(source, d.crop, d.flip, size)
        x = batched.jittered(x, d.order, d.factors, d.shift)
        if (rows := batched.rows_where(d.gray, device)) is not None:
            x[rows] = batched.luma(x[rows])[..., None].expand(-1, -1, -1, 3)
        x = batched.blurred(x, d.blur)
        if bool((d.solarize < 256).any()):
            limit = d.solarize.to(device, non_blocking=True)[:, None, None, None]
            x = torch.where(x >= limit, 255 - x, x)
        for quarters in (1, 2, 3):
            if (rows := batched.rows_where(d.quarters == quarters, device)) is not None:
                x[rows] = x[rows].rot90(quarters, (1, 2))
        return x


def packed_views(drawn: Sequence[ViewParams]) -> DrawnViews:
    """One role of all images of a batch."""
    crops = [(p.crop.top, p.crop.left, p.crop.height, p.crop.width) for p in drawn]
    jitter = [p.jitter for p in drawn]
    none = (1.0, 1.0, 1.0)
    return DrawnViews(
        torch.tensor(crops),
        torch.tensor([p.flip for p in drawn]),
        torch.tensor([ORDERS[j.order if j else ""] for j in jitter]),
        torch.tensor([(j.brightness, j.contrast, j.saturation) if j else none for j in jitter]),
        torch.tensor([hue_shift(j) if j else 0 for j in jitter]),
        torch.tensor([p.gray for p in drawn]),
        torch.tensor([p.blur or 0.0 for p in drawn], dtype=torch.float64),
        torch.tensor([256 if p.solarize is None else max(0, min(256, p.solarize)) for p in drawn]),
        torch.tensor([p.rotation // 90 for p in drawn]),
        torch.tensor([int(dict(p.suppress.drawn)["steps"]) if p.suppress else 0 for p in drawn]),
    )


def _refusal(why: str) -> UserError:
    return UserError(f"loop.views=device: {why}; leave loop.views out")
