"""Jigsaw puzzles: which of a fixed set of orders were the nine tiles of an image put into?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.data import Batch
from cuewise.encoders import Encoder
from cuewise.encoders.heads import unit
from cuewise.encoders.trial import empty_image, in_evaluation_mode
from cuewise.errors import UserError
from cuewise.methods.hard import everyones_rows
from cuewise.methods.method import Method, MethodSettings, Setup, Step, ViewSpec, at_least
from cuewise.methods.permutations import permutation_set
from cuewise.objectives.nce import at_least_single

GRID = 3  # tiles per side
SIDE, TILE, JITTER = 255, 64, 2  # of an image, a tile and the shift of a channel, as published
WIDE = 1024  # features of a tile beyond which a layer narrows them, as AlexNet's fc6
# by both versions of an image
SHARED = ("crop", "flip", "jitter", "gray", "rotation", "style", "own", "region")


@dataclass(frozen=True)
class Settings(MethodSettings):
    """--set jigsaw.*"""

    permutations: Annotated[int | None, "orders to distinguish [1,000 from 100,000 images on, else 100]"] = (
        None
    )
    hidden: Annotated[
        int | None, "width of the classifier [4,096, or 512 on encoders of fewer than 512 features]"
    ] = None
    jitter: Annotated[
        int | None, "largest shift of a colour channel in pixels [2 at 255 px, fewer below]"
    ] = None
    patchwise: Annotated[bool, "--suppress filters each tile by itself, in place of the whole image"] = False

    def fitted(self, images: int, steps: int) -> Settings:
        count = (1000 if images >= 100_000 else 100) if self.permutations is None else self.permutations
        return replace(self, permutations=count)


class Jigsaw(Method):
    """One tower sees the tiles of an image one by one; a classifier on all nine features answers the order they are in.

    Tiles are cut with a gap between them, shifted by channel and normalised each by its own mean and spread, so that
    neither edges, chromatic aberration nor brightness tell where a tile was.
    """

    name = "jigsaw"
    summary = "puzzles of nine tiles, whole-image or patch-wise texture suppression (Jigsaw)"
    citation = "Noroozi and Favaro 2016; suppression: Mishra et al. 2020"
    equation = "L = −log p(order | nine tiles), cross-entropy over a fixed set of orders"
    views = {"image": "puzzle"}
    optim = {
        "name": "sgd",
        "lr": 0.01,
        "reference_batch": 256,
        "weight_decay": 5e-4,
        "schedule": "step",
        "milestones": [1 / 3, 2 / 3, 8 / 9],  # 30, 60 and 80 of 90 epochs
    }
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        d = self.encoder.dim
        width = min(d, WIDE)
        hidden = s.hidden or (4096 if d >= 512 else 512)
        self.narrow = nn.Sequential(nn.Linear(d, width), nn.ReLU(inplace=True)) if d > WIDE else nn.Identity()
        self.classifier = nn.Sequential(
            nn.Linear(GRID**2 * width, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, s.permutations or 0)
        )
        check_tiles(self.encoder, self.setup.size)
        orders = torch.from_numpy(permutation_set(s.permutations or 0).astype(np.int64))
        self.register_buffer("orders", orders)  # P×9, part of the state: the label is the row
        self.orders: Tensor

    @classmethod
    def check(cls, setup: Setup) -> None:
        s: Settings = setup.settings
        at_least("jigsaw.permutations", s.permutations, 2, math.factorial(GRID**2))
        at_least("jigsaw.hidden", s.hidden, 1)
        at_least("jigsaw.jitter", s.jitter, 0, setup.size // GRID)
        if s.patchwise and not setup.suppressed:
            raise UserError(
                "jigsaw.patchwise filters tiles against texture: add --suppress, e.g. --suppress anisotropic"
            )

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        if not setup.settings.patchwise:
            return super().shown(setup)
        plain = ViewSpec("image", "puzzle", suppress=0.0)
        return plain, ViewSpec("filtered", "puzzle", shares=SHARED, suppress=1.0)

    @property
    def chance_loss(self) -> float:
        return math.log(self.settings.permutations)

    def forward(self, batch: Batch) -> Step:
        images = batch.views["image"]
        total, mine = everyones_rows(self.comm, len(images), 1, images.device)
        label = torch.randint(len(self.orders), (total,), generator=self.generator).to(images.device)[mine]
        x = self.tiles(batch, total, mine)  # B×9×3×t×t, in the order of the image
        order = self.orders[label]  # B×9
        h = self.narrow(self.encoder(x.flatten(0, 1))).unflatten(0, (len(images), -1))  # B×9×D
        logits = self.classifier(at_rows(h, order).flatten(1))  # B×P
        loss = F.cross_entropy(at_least_single(logits), label)
        right = (logits.argmax(1) == label).float().mean()
        return Step(loss, unit(h.detach().mean(1)), extra={"accuracy": right})

    def tiles(self, batch: Batch, total: int, mine: Tensor) -> Tensor:
        """B×9×3×t×t, normalised: random places in the cells, and with `patchwise` a filtered tile here and there."""
        images = batch.views["image"]
        shift = channel_shift(images.shape[-1]) if self.settings.jitter is None else self.settings.jitter
        corner, moved, which = (
            torch.rand(total, GRID**2, *rest, generator=self.generator).to(images.device)[mine]
            for rest in ((2,), (3, 2), ())
        )
        x = cut_tiles(images, corner, moved, shift)
        if self.settings.patchwise:
            filtered = cut_tiles(batch.views["filtered"], corner, moved, shift)
            x = torch.where((which < self.setup.suppressed)[..., None, None, None], filtered, x)
        return normalised(x)

    @torch.no_grad()
    def pictures(self, batch: Batch) -> dict[str, NDArray[np.uint8]]:
        """Puzzles as the tower sees them: nine tiles in a shuffled order."""
        state = self.generator.get_state()
        images = batch.views["image"]
        total, mine = len(images), torch.arange(len(images), device=images.device)
        label = torch.randint(len(self.orders), (total,), generator=self.generator).to(images.device)
        x = at_rows(self.tiles(batch, total, mine), self.orders[label])
        self.generator.set_state(state)
        x = F.pad(x.mul(48).add(128).clamp(0, 255), (1, 1, 1, 1), value=255.0)  # a white frame
        rows = x.unflatten(1, (GRID, GRID)).permute(0, 1, 4, 2, 5, 3)  # B×3×t×3×t×C
        return {"puzzle": rows.flatten(1, 2).flatten(2, 3).byte().cpu().numpy()}


def check_tiles(encoder: Encoder, size: int) -> None:
    """An encoder that cannot see a single tile is refused before training."""
    t = tile_side(size)
    try:
        with in_evaluation_mode(encoder), torch.no_grad():
            encoder(empty_image(encoder, t))
    except RuntimeError as error:
        raise UserError(
            f"jigsaw: tiles of {t}×{t} pixels (--size {size}) are too small for {encoder.card.arch}: give a larger --size, "
            f"{SIDE} as published"
        ) from error


def at_rows(x: Tensor, order: Tensor) -> Tensor:
    """B×9×… in the order B×9."""
    return x[torch.arange(len(x), device=x.device).unsqueeze(1), order]


def channel_shift(size: int) -> int:
    """The published ±2 pixels at 255, in proportion below."""
    return round(JITTER * size / SIDE)


def tile_side(size: int) -> int:
    """64 of 255 pixels, in proportion below."""
    return max(1, min(size // GRID, round(TILE * size / SIDE)))


def tile_starts(size: int, corner: Tensor) -> Tensor:
    """B×9×2, row and column where the tile of each cell of a 3×3 grid begins; corner B×9×2 in 0…1 of the space in the cell."""
    cell = size // GRID
    at = torch.arange(GRID, device=corner.device) * cell
    return torch.cartesian_prod(at, at) + (corner * (cell - tile_side(size) + 1)).long()


def cut_tiles(images: Tensor, corner: Tensor, moved: Tensor, shift: int) -> Tensor:
    """One tile from each cell of a 3×3 grid, each colour channel moved by up to `shift` pixels.

    images B×3×S×S, corner B×9×2 in 0…1 of the space that the cell leaves, moved B×9×3×2 in 0…1 of −shift…shift.
    Returns B×9×3×t×t; what a shift takes over the border is moved back.
    """
    b, size = len(images), images.shape[-1]
    t = tile_side(size)
    by = (moved * (2 * shift + 1)).long() - shift  # B×9×3×2
    start = (tile_starts(size, corner).unsqueeze(2) + by).clamp(0, size - t)  # B×9×3×2
    step = torch.arange(t, device=images.device)
    rows = (start[..., 0, None] + step).unsqueeze(4)  # B×9×3×t×1
    columns = (start[..., 1, None] + step).unsqueeze(3)  # B×9×3×1×t
    which = torch.arange(b, device=images.device).view(b, 1, 1, 1, 1)
    channel = torch.arange(images.shape[1], device=images.device).view(1, 1, -1, 1, 1)
    return images[which, channel, rows, columns]


def normalised(tiles: Tensor) -> Tensor:
    """Each channel of each tile to mean 0 and spread 1; a channel of one value becomes 0.

    What adds a number to a channel, as the value jitter of the public code does, cancels here.
    """
    mean = tiles.mean((-2, -1), keepdim=True)
    spread = (tiles - mean).square().mean((-2, -1), keepdim=True).sqrt()
    return (tiles - mean) / torch.where(spread > 1e-5, spread, 1)
