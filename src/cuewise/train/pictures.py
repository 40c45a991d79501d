"""Pictures of a run: the first views as the encoder sees them, and what the method makes of them over training."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL.Image import Image
from torch import Tensor

from cuewise.data import Batch, Dataset
from cuewise.files import aside
from cuewise.methods import Method
from cuewise.views import contact_sheet
from cuewise.views.boxes_preview import boxed_images

ROWS = 8
GROWS = "reconstruction"  # the picture of a method that gets one column per moment of training
MOMENTS = 4  # parts of training after each of which a column is added


def first_views(batch: Batch) -> Batch:
    """The first images of a batch, uint8."""
    return Batch({role: x[:ROWS].clone().cpu() for role, x in batch.views.items()}, batch.index[:ROWS])


@torch.no_grad()
def pictures_of(method: Method, batch: Batch, device: torch.device) -> dict[str, Any]:
    """What the method shows of a batch of uint8 views; nothing of it changes the run."""
    training = method.training
    try:
        return method.eval().pictures(batch.to(device, method.encoder.normalise))
    finally:
        method.train(training)


def show_views(batch: Batch, method: Method, device: torch.device, folder: Path, data: Dataset) -> None:
    """RUN/views.png: the first images of the first batch as the encoder sees them, and the method's own pictures.

    Where crops were taken from boxes, the whole images come first, with boxes and crops drawn in.
    """
    columns: dict[str, Any] = {}
    for role, x in batch.views.items():
        single = x.ndim == 4 or x.shape[1] == 1
        stacks = [x.flatten(0, -4)] if single else list(x.unbind(1))  # negatives have one column each
        columns |= {
            role if single else f"{role} {i + 1}": y[:ROWS].cpu().numpy() for i, y in enumerate(stacks)
        }
    own = pictures_of(method, first_views(batch), device)
    own.pop("image", None)  # a view, unchanged
    whole = (
        {"boxes": boxed_images(batch, data, ROWS)} if any(n.endswith(".region") for n in batch.facts) else {}
    )
    save(contact_sheet(whole | columns | own), folder / "views.png")


def save(picture: Image, file: Path) -> None:
    """A PNG that is there whole or not at all."""
    with aside(file) as part:
        picture.save(part, "PNG", compress_level=1)


@dataclass
class Reconstructions:
    """RUN/reconstructions.png: the same images at the start, over training and at the end, with the same masks and noise.

    views    the images, uint8 by role; none where the method reconstructs nothing
    columns  "step N" → N×H×W×3 uint8
    """

    views: dict[str, Tensor] = field(default_factory=dict)
    columns: dict[str, Tensor] = field(default_factory=dict)

    def begin(self, batch: Batch) -> None:
        """These images from now on."""
        self.views = {role: x for role, x in first_views(batch).views.items() if x.ndim == 4}

    def due(self, step: int, total: int) -> bool:
        """Whether a part of training ended since the last column."""
        last = max((int(name.split()[1]) for name in self.columns), default=-1)
        return bool(self.views) and MOMENTS * step // total > MOMENTS * last // total

    def add(self, method: Method, device: torch.device, step: int, folder: Path) -> None:
        """A column for this step, and the picture written again."""
        if not self.views:
            return
        shown = pictures_of(method, Batch(self.views, torch.arange(ROWS)), device)
        if GROWS not in shown:
            self.views = {}
            return
        self.columns[f"step {step}"] = torch.from_numpy(shown[GROWS])
        sheet: dict[str, Any] = {}
        for name, pixels in shown.items():
            sheet |= {n: c.numpy() for n, c in self.columns.items()} if name == GROWS else {name: pixels}
        save(contact_sheet(sheet), folder / "reconstructions.png")

    def state(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"views": self.views, "columns": self.columns}
