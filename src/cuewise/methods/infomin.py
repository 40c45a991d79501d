"""InfoMin: MoCo with stronger augmentation and a jigsaw branch that must recognise the image from its tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.methods import moco
from cuewise.methods.hard import everyones_rows
from cuewise.methods.jigsaw import GRID, tile_side, tile_starts
from cuewise.methods.method import Setup, Step, ViewSpec, at_least
from cuewise.objectives.nce import extended_nce


@dataclass(frozen=True)
class Settings(moco.Settings):
    """--set infomin.*"""

    temperature: Annotated[float, "of the softmax (τ)"] = 0.15
    beta: Annotated[float, "share of the jigsaw branch in the loss (β)"] = 0.5


class InfoMin(moco.MoCo):
    """L = (1−β)·L_moco + β·L_jigsaw, both against the same keys and the same queue."""

    name = "infomin"
    summary = "MoCo with stronger augmentation and a jigsaw branch (InfoMin)"
    citation = "Tian et al. 2020, What Makes for Good Views; negatives: Ge et al. 2021"
    equation = (
        "L = (1 − β) L_moco(q) + β L_moco(q_jigsaw)\n"
        "q_jigsaw: nine tiles of another view, encoded one by one and put together in random order"
    )
    views = {"query": "infomin", "key": "infomin", "jigsaw": "jigsaw"}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        d, dim = self.encoder.dim, self.settings.dim
        self.project_tile = mlp([d, d, dim])
        self.project_jigsaw = nn.Linear(GRID**2 * dim, dim)

    @classmethod
    def check(cls, setup: Setup) -> None:
        super().check(setup)
        at_least("infomin.beta", setup.settings.beta, 0, 1)

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        strong = ("rand-augment" if setup.color_jitter else "rand-augment-geometry",)
        return (
            ViewSpec("query", "infomin", adds=strong),
            ViewSpec("key", "infomin", adds=strong),
            ViewSpec("jigsaw", "jigsaw"),
        )

    def forward(self, batch: Batch) -> Step:
        step, k = super().forward(batch), self.queue.held
        assert k is not None
        j = self.embed_jigsaw(batch.views["jigsaw"])  # B×C
        with torch.autocast(j.device.type, enabled=False):
            jigsaw = extended_nce((j * k).sum(1), j @ self.queue.keys.T, tau=self.settings.temperature)
        beta = self.settings.beta
        extra = {"loss_moco": step.loss.detach(), "loss_jigsaw": jigsaw.detach()}
        return replace(step, loss=(1 - beta) * step.loss + beta * jigsaw, extra=extra)

    def embed_jigsaw(self, images: Tensor) -> Tensor:
        """B×C: the tiles pass one by one, and are put together in a random order."""
        total, mine = everyones_rows(self.comm, len(images), 1, images.device)
        corner = torch.rand(total, GRID**2, 2, generator=self.generator).to(images.device)[mine]  # B×9×2
        order = torch.rand(total, GRID**2, generator=self.generator).to(images.device)[mine].argsort(1)  # B×9
        x = tiles(images, corner)  # B·9×3×t×t
        z = self.project_tile(self.encoder(x)).unflatten(0, (len(images), -1))  # B×9×C
        shuffled = z.gather(1, order.unsqueeze(2).expand_as(z))
        return unit(self.project_jigsaw(shuffled.flatten(1)))


def tiles(images: Tensor, corner: Tensor) -> Tensor:
    """Nine tiles of each image, one from each cell of a 3×3 grid, at `corner` (B×9×2 in 0…1) of the space that the cell leaves.

    B×3×S×S → B·9×3×t×t with t = 64/255·S, channels last.
    """
    b, size = len(images), images.shape[-1]
    start = tile_starts(size, corner)  # B×9×2
    step = torch.arange(tile_side(size), device=images.device)
    rows = (start[..., 0, None] + step).unsqueeze(3)  # B×9×t×1
    columns = (start[..., 1, None] + step).unsqueeze(2)  # B×9×1×t
    which = torch.arange(b, device=images.device).view(b, 1, 1, 1)
    cut = images.permute(0, 2, 3, 1)[which, rows, columns]  # B×9×t×t×3
    return cut.flatten(0, 1).permute(0, 3, 1, 2)
