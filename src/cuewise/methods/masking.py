"""What masked methods share: random masks and noise, the decoder, and pictures of what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from cuewise.encoders import Encoder
from cuewise.encoders.vit_tiny import sine_cosine
from cuewise.errors import UserError
from cuewise.methods.method import Comm, MethodSettings
from cuewise.objectives.masked import patch_statistics, patchify, unpatchify

# the optimiser of masked methods; each has its own rate
ADAMW = {"name": "adamw", "reference_batch": 256, "weight_decay": 0.05, "warmup_share": 0.05}
HEAD_WIDTH = 32  # of the decoder: 512 wide is 16 heads, 96 wide is 3, as published
LARGE = 768  # encoders from this width on have the published decoder, 512 wide and 8 blocks deep


@dataclass(frozen=True)
class DecoderSettings(MethodSettings):
    """Of the decoder, and of what it predicts."""

    decoder_width: Annotated[
        int | None, "of the decoder [512, or half the width of an encoder narrower than 768]"
    ] = None
    decoder_depth: Annotated[int | None, "of the decoder [8, or 2 for an encoder narrower than 768]"] = None
    normalise_target: Annotated[bool, "pixels to reconstruct are normalised per patch"] = False


def visible_patches(patches: int, mask: float) -> int:
    """How many of N patches are encoded; some are hidden and some are not, unless mask is 0."""
    return patches if mask == 0 else min(max(round(patches * (1 - mask)), 1), patches - 1)


@dataclass(frozen=True)
class Draws:
    """Random numbers of a step, drawn for the images of all processes: they do not depend on how images are shared out."""

    comm: Comm
    generator: torch.Generator

    def mine(self, drawn: Tensor) -> Tensor:
        """The rows of this process's images."""
        share = len(drawn) // self.comm.world
        return drawn[self.comm.rank * share : (self.comm.rank + 1) * share]

    def keep(self, x: Tensor, patches: int, mask: float) -> Tensor | None:
        """B×n patches to encode, another random choice for each image, in order; None: all."""
        if mask == 0:
            return None
        order = self.mine(torch.rand(self.comm.world * len(x), patches, generator=self.generator)).argsort(1)
        return order[:, : visible_patches(patches, mask)].sort(1).values.to(x.device)

    def noise(self, x: Tensor, largest: float) -> tuple[Tensor, Tensor]:
        """σ ~ U[0, largest] (B) and σe with e ~ N(0, I) (as x).

        Each image has a seed of its own, so that a process draws the noise of its own images only.
        """
        everyone = self.comm.world * len(x)
        sigma = self.mine(torch.rand(everyone, generator=self.generator) * largest).to(x)
        seeds = self.mine(torch.randint(2**31, (everyone,), generator=self.generator)).tolist()
        own, e = torch.Generator(x.device), torch.empty(x.shape, device=x.device)
        for row, seed in zip(e, seeds):
            row.normal_(generator=own.manual_seed(seed))
        return sigma, sigma.view(-1, 1, 1, 1) * e.to(x)


class Decoder(nn.Module):
    """Transformer blocks over all places: encoded tokens where the encoder looked, one learned token elsewhere.

    width, depth  None: 512 and 8 as published, for encoders narrower than 768 half their width and 2
    masked        whether there are places without an encoded token
    """

    def __init__(self, encoder: Encoder, width: int | None, depth: int | None, masked: bool) -> None:
        super().__init__()
        large = encoder.dim >= LARGE
        width = width or (512 if large else -(-encoder.dim // (2 * HEAD_WIDTH)) * HEAD_WIDTH)
        depth = depth or (8 if large else 2)
        self.embed = nn.Linear(encoder.dim, width)
        self.hidden = nn.Parameter(torch.zeros(width)) if masked else None
        self.blocks = nn.Sequential(*(Block(width, width // HEAD_WIDTH, qkv_bias=True) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3 * encoder.patch**2)
        self.positions: Tensor
        self.register_buffer("positions", sine_cosine(encoder.grid[0], width), persistent=False)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)
        if self.hidden is not None:
            nn.init.normal_(self.hidden, std=0.02)

    def forward(self, tokens: Tensor, keep: Tensor | None) -> Tensor:
        """B×n×D encoded tokens at the places `keep` (B×n) → B×N×P, a prediction for every patch."""
        t = self.embed(tokens)  # B×n×W
        if keep is not None:
            assert self.hidden is not None
            everywhere = self.hidden.to(t.dtype).expand(len(t), self.positions.shape[1], -1)
            t = everywhere.scatter(1, keep.unsqueeze(2).expand_as(t), t)  # B×N×W
        out: Tensor = self.head(self.norm(self.blocks(t + self.positions)))
        return out


def hidden_patches(keep: Tensor | None, batch: int, patches: int, device: torch.device) -> Tensor:
    """B×N, True where a patch was not encoded."""
    if keep is None:
        return torch.zeros(batch, patches, dtype=torch.bool, device=device)
    return torch.ones(batch, patches, dtype=torch.bool, device=device).scatter(1, keep, False)


def check_masking(name: str, mask: float, width: int | None, depth: int | None) -> None:
    """The settings that masked methods share."""
    if not 0 <= mask < 1:
        raise UserError(f"{name}.mask {mask}: the share of hidden patches, 0 to below 1")
    if width is not None and (width < HEAD_WIDTH or width % HEAD_WIDTH):
        raise UserError(f"{name}.decoder_width {width}: must be a multiple of {HEAD_WIDTH}")
    if depth is not None and depth < 1:
        raise UserError(f"{name}.decoder_depth {depth}: must be 1 or more")


@dataclass(frozen=True)
class Painter:
    """Normalised images, patches and noise as pixels."""

    encoder: Encoder

    def pixels(self, x: Tensor) -> NDArray[np.uint8]:
        """Normalised B×3×H×W → uint8 B×H×W×3."""
        mean, std = (
            torch.tensor(v, device=x.device).view(3, 1, 1)
            for v in (self.encoder.card.mean, self.encoder.card.std)
        )
        return _as_bytes(x.float() * std + mean)

    def masked(self, x: Tensor, hidden: Tensor) -> NDArray[np.uint8]:
        """The image with its hidden patches in grey."""
        shown = self.pixels(x)
        where = unpatchify(
            hidden.unsqueeze(2).expand(-1, -1, 3 * self.encoder.patch**2),
            self.encoder.patch,
            self.encoder.grid,
        )
        shown[where.permute(0, 2, 3, 1).cpu().numpy()] = 128
        return shown

    def reconstructed(
        self, x: Tensor, predicted: Tensor, hidden: Tensor, normalised: bool
    ) -> NDArray[np.uint8]:
        """The image with its hidden patches as predicted; `normalised` predictions get the mean and spread of the patch."""
        clean = patchify(x, self.encoder.patch)
        if normalised:
            mean, std = patch_statistics(clean)
            predicted = predicted * std + mean
        filled = torch.where(hidden.unsqueeze(2), predicted.to(clean.dtype), clean)
        return self.pixels(unpatchify(filled, self.encoder.patch, self.encoder.grid))

    def noise(self, noise: Tensor, hidden: Tensor, largest: float) -> NDArray[np.uint8]:
        """Noise B×N×P around grey, four times `largest` from black to white; hidden patches are grey."""
        seen = torch.where(hidden.unsqueeze(2), torch.zeros_like(noise), noise).float()
        return _as_bytes(0.5 + unpatchify(seen, self.encoder.patch, self.encoder.grid) / (4 * largest))


def _as_bytes(x: Tensor) -> NDArray[np.uint8]:
    out: NDArray[np.uint8] = x.mul(255).round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()
    return np.ascontiguousarray(out)
