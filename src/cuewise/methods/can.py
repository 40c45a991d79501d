"""CAN: contrast, masked reconstruction and denoising in one transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.data import Batch
from cuewise.encoders.heads import mlp, unit
from cuewise.encoders.load import pooled_over_patches
from cuewise.errors import UserError
from cuewise.methods.in_batch import contrast_views
from cuewise.methods.masking import (
    ADAMW,
    Decoder,
    DecoderSettings,
    Draws,
    Painter,
    check_masking,
    hidden_patches,
)
from cuewise.methods.method import (
    UNSPREAD,
    Method,
    Setup,
    SingleProcess,
    Step,
    ViewSpec,
    at_least,
    by_query,
)
from cuewise.objectives.masked import denoising, noise_level, patchify, reconstruction


@dataclass(frozen=True)
class Settings(DecoderSettings):
    """--set can.*"""

    weights: Annotated[list[float], "of contrast, reconstruction and denoising"] = field(
        default_factory=lambda: [0.03, 0.67, 0.30]
    )
    mask: Annotated[float, "share of patches that are hidden"] = 0.5
    sigma: Annotated[float, "largest standard deviation of the noise, in normalised pixels (σ_max)"] = 0.05
    raw_sigma: Annotated[
        bool, "the decoder gets sinusoids of σ itself, as published; they hardly change with σ"
    ] = False
    temperature: Annotated[float, "of the softmax (τ)"] = 0.1
    hidden: Annotated[int | None, "width of the projector's hidden layer [the encoder's width]"] = None
    dim: Annotated[int, "of the embedding"] = 128
    views: Annotated[int | None, "per image [2 where they are contrasted, else 1]"] = None

    @property
    def roles(self) -> tuple[str, ...]:
        return ("first", "second")[: self.views or (2 if self.weights[0] else 1)]


class Encoded(NamedTuple):
    """V views of B images as they were encoded, the views one below the other."""

    clean: Tensor  # V·B×3×H×W
    tokens: Tensor  # V·B×n×D
    keep: Tensor | None  # V·B×n places of the tokens; None: all
    sigma: Tensor | None  # V·B
    noise: Tensor | None  # V·B×3×H×W, σe


def joined(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Rows one below the other; None where there are none."""
    found = [part for part in parts if part is not None]
    return torch.cat(found) if len(found) > 1 else found[0] if found else None


class CAN(Method):
    """One pass over the visible patches of two noisy views gives three losses: the views find each other, the decoder
    predicts the hidden patches of the clean image, and the noise on the visible ones. A term of weight 0 is not built."""

    name = "can"
    summary = "contrast, masked reconstruction and denoising in one pass (CAN), for vision transformers"
    citation = "Mishra et al. 2022; negatives: Ge et al. 2021"
    example = "--model timm/vit_small_patch16_224"
    equation = (
        "L = w_1 L_contrast + w_2 · mean over hidden patches (x̂ − x)² + w_3 · mean over visible patches (ê − σe)²\n"
        "L_contrast as in simclr; the encoder sees x + σe on the visible patches"
    )
    views = {"first": "moco-v2", "second": "moco-v2"}
    negatives_from = ("first", "second")
    takes_hard = True
    optim = {**ADAMW, "lr": 2.5e-4}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        contrast, rebuild, denoise = s.weights
        self.encoder.fix_positions()
        self.patches, d = self.encoder.grid[0] * self.encoder.grid[1], self.encoder.dim
        self.projector = mlp([d, s.hidden or d, s.dim], norm=True) if contrast else None
        self.level = mlp([d, d, d]) if denoise else None
        decodes = rebuild or denoise
        self.decoder = (
            Decoder(self.encoder, s.decoder_width, s.decoder_depth, s.mask > 0) if decodes else None
        )

    @classmethod
    def model(cls, spec: str) -> str:
        return pooled_over_patches(spec)

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        return tuple(ViewSpec(role, cls.views[role]) for role in setup.settings.roles)

    @classmethod
    def check(cls, setup: Setup) -> None:
        s: Settings = setup.settings
        if len(s.weights) != 3 or min(s.weights) < 0 or not sum(s.weights):
            raise UserError(
                f"can.weights {s.weights}: three numbers, 0 or more, of contrast, reconstruction, denoising"
            )
        check_masking("can", s.mask, s.decoder_width, s.decoder_depth)
        if s.weights[1] and s.mask == 0:
            raise UserError(
                "can.mask 0 leaves nothing to reconstruct: set can.mask, or the second of can.weights to 0"
            )
        if s.weights[2] and s.sigma <= 0:
            raise UserError(f"can.sigma {s.sigma}: must be above 0, or the third of can.weights 0")
        at_least("can.views", s.views, 1, 2)
        if s.weights[0] and len(s.roles) < 2:
            raise UserError("can.views 1 leaves nothing to contrast: set the first of can.weights to 0")
        if not s.weights[0] and (setup.negatives.kinds or setup.hard):
            dial = "--negatives" if setup.negatives.kinds else "--hard"
            raise UserError(
                f"{dial} acts on contrast, which has no weight: set the first of can.weights above 0"
            )

    @property
    def least_spread(self) -> float:
        return super().least_spread if self.settings.weights[0] else UNSPREAD

    def forward(self, batch: Batch) -> Step:
        draws, s = Draws(self.comm, self.generator), self.settings
        seen = self.see([batch.views[role] for role in s.roles], draws)  # all views in one pass
        pooled = self.encoder.pool(seen.tokens).chunk(len(s.roles))  # B×D each
        terms: dict[str, Tensor] = {}
        if self.projector is not None:
            z = [unit(self.projector(p)) for p in pooled]  # B×C
            ns = [self.embed_negatives(batch, role, draws) for role in s.roles]  # B×M×C or None
            terms["contrast"] = self.contrast(z, ns)
        else:
            z, ns = [unit(p) for p in pooled], [None]
        if self.decoder is not None:
            terms |= self.decode(seen)
        weights = dict(zip(("contrast", "reconstruction", "denoising"), s.weights))
        weighed = [weights[name] * term for name, term in terms.items()]
        loss = torch.stack(weighed).sum() if len(weighed) > 1 else weighed[0]
        second = z[1].detach() if len(z) > 1 else None
        extra = {name: term.detach() for name, term in terms.items()}
        return Step(loss, z[0].detach(), second, None if ns[0] is None else ns[0].detach(), extra)

    def see(self, views: list[Tensor], draws: Draws) -> Encoded:
        """Encode the visible patches of views, one below the other, with noise where it is to be predicted; the views
        themselves stay clean."""
        x, drawn = joined(views), [self.draw(view, draws) for view in views]
        keep, sigma, noise = (joined([d[i] for d in drawn]) for i in range(3))
        assert x is not None
        tokens = self.encoder.tokens(x if noise is None else x + noise, keep)
        return Encoded(x, tokens, keep, sigma, noise)

    def draw(self, x: Tensor, draws: Draws) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Of a view: which patches are visible, and where it is to be predicted σ and noise."""
        keep = draws.keep(x, self.patches, self.settings.mask)
        return keep, *(draws.noise(x, self.settings.sigma) if self.level is not None else (None, None))

    def embed_negatives(self, batch: Batch, role: str, draws: Draws) -> Tensor | None:
        """B×M×C; negatives are masked and noisy as views are, so that neither gives them away."""
        assert self.projector is not None
        images = self.made_of(batch, role)
        made = [unit(self.projector(self.encoder.pool(self.see([x], draws).tokens))) for x in images]
        return by_query(made, len(batch.views[role]))

    def contrast(self, z: list[Tensor], ns: list[Tensor | None]) -> Tensor:
        first, second = ns
        pair = None if first is None or second is None else (first, second)
        everyone = (self.comm.gather(z[0]), self.comm.gather(z[1]))  # W·B×C each
        with torch.autocast(z[0].device.type, enabled=False):
            return contrast_views(self, (z[0], z[1]), everyone, pair, self.settings.temperature)

    def decode(self, seen: Encoded) -> dict[str, Tensor]:
        """The decoder's terms, each a mean over the views: as many patches are hidden in each of them."""
        terms: dict[str, Tensor] = {}
        hidden = hidden_patches(seen.keep, len(seen.clean), self.patches, seen.clean.device)  # V·B×N
        predicted, p = self.predict(seen), self.encoder.patch  # V·B×N×P
        if self.settings.weights[1]:
            clean = patchify(seen.clean, p)
            terms["reconstruction"] = reconstruction(
                predicted, clean, hidden, normalise=self.settings.normalise_target
            )
        if seen.noise is not None:
            terms["denoising"] = denoising(predicted, patchify(seen.noise, p), hidden)
        return terms

    def predict(self, view: Encoded) -> Tensor:
        """B×N×P; the decoder knows the noise level, which is added to every encoded token."""
        assert self.decoder is not None
        tokens, s = view.tokens, self.settings
        if self.level is not None and view.sigma is not None:
            level = noise_level(view.sigma, self.encoder.dim, s.sigma, raw=s.raw_sigma)
            tokens = tokens + self.level(level).unsqueeze(1)
        out: Tensor = self.decoder(tokens, view.keep)
        return out

    @torch.no_grad()
    def pictures(self, batch: Batch) -> dict[str, NDArray[np.uint8]]:
        """The image, what the encoder sees of it, the reconstruction, the noise and its prediction; with masks and noise
        that are always the same."""
        x, paint, s = batch.views["first"], Painter(self.encoder), self.settings
        view = self.see([x], Draws(SingleProcess(), torch.Generator().manual_seed(0)))
        hidden = hidden_patches(view.keep, len(x), self.patches, x.device)
        shown = {
            "image": paint.pixels(x),
            "masked": paint.masked(x if view.noise is None else x + view.noise, hidden),
        }
        if self.decoder is None:
            return shown
        predicted = self.predict(view)
        if s.weights[1]:
            shown["reconstruction"] = paint.reconstructed(x, predicted, hidden, s.normalise_target)
        if view.noise is not None:
            shown["noise"] = paint.noise(patchify(view.noise, self.encoder.patch), hidden, s.sigma)
            shown["predicted noise"] = paint.noise(predicted, hidden, s.sigma)
        return shown
