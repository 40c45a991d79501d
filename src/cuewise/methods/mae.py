"""MAE: masked autoencoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray

from cuewise.data import Batch
from cuewise.encoders.heads import unit
from cuewise.encoders.load import pooled_over_patches
from cuewise.errors import UserError
from cuewise.methods.masking import (
    ADAMW,
    Decoder,
    DecoderSettings,
    Draws,
    Painter,
    check_masking,
    hidden_patches,
)
from cuewise.methods.method import UNSPREAD, Method, Setup, SingleProcess, Step
from cuewise.objectives.masked import patchify, reconstruction


@dataclass(frozen=True)
class Settings(DecoderSettings):
    """--set mae.*"""

    mask: Annotated[float, "share of patches that are hidden"] = 0.75


class MAE(Method):
    """Only the visible patches are encoded; a small decoder predicts the pixels of the hidden ones."""

    name = "mae"
    summary = "reconstruction of hidden patches from the visible ones (MAE), for vision transformers"
    citation = "He et al. 2022"
    example = "--model timm/vit_small_patch16_224"
    equation = "L = mean over the hidden patches of (decoder(tokens) − pixels)²"
    views = {"first": "mae"}
    optim = {**ADAMW, "lr": 1.5e-4}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.encoder.fix_positions()
        self.patches = self.encoder.grid[0] * self.encoder.grid[1]
        self.decoder = Decoder(self.encoder, s.decoder_width, s.decoder_depth, masked=True)

    @classmethod
    def model(cls, spec: str) -> str:
        return pooled_over_patches(spec)

    @classmethod
    def check(cls, setup: Setup) -> None:
        s: Settings = setup.settings
        check_masking("mae", s.mask, s.decoder_width, s.decoder_depth)
        if s.mask == 0:
            raise UserError(
                "mae.mask 0 leaves nothing to reconstruct: hide a share of the patches, e.g. 0.75"
            )

    @property
    def least_spread(self) -> float:
        return UNSPREAD

    def forward(self, batch: Batch) -> Step:
        x = batch.views["first"]
        keep = Draws(self.comm, self.generator).keep(x, self.patches, self.settings.mask)  # B×n
        tokens = self.encoder.tokens(x, keep)  # B×n×D
        hidden = hidden_patches(keep, len(x), self.patches, x.device)  # B×N
        predicted = self.decoder(tokens, keep)  # B×N×P
        clean = patchify(x, self.encoder.patch)
        loss = reconstruction(predicted, clean, hidden, normalise=self.settings.normalise_target)
        z = unit(self.encoder.pool(tokens.detach()))
        return Step(loss, z.detach(), extra={"reconstruction": loss.detach()})

    @torch.no_grad()
    def pictures(self, batch: Batch) -> dict[str, NDArray[np.uint8]]:
        """The image, what the encoder sees of it, and the reconstruction; with masks that are always the same."""
        x, paint = batch.views["first"], Painter(self.encoder)
        keep = Draws(SingleProcess(), torch.Generator().manual_seed(0)).keep(
            x, self.patches, self.settings.mask
        )
        hidden = hidden_patches(keep, len(x), self.patches, x.device)
        predicted = self.decoder(self.encoder.tokens(x, keep), keep)
        return {
            "image": paint.pixels(x),
            "masked": paint.masked(x, hidden),
            "reconstruction": paint.reconstructed(x, predicted, hidden, self.settings.normalise_target),
        }
