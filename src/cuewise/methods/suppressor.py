"""A learned suppressor in front of a classifier: what a generator makes of normalised images, and the loss that keeps it one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.unet import PatchGAN, UNet
from cuewise.encoders.weights import part_of_checkpoint
from cuewise.errors import UserError
from cuewise.methods.pix2pix import Target, gan_losses, patch_of


def load_generator(folder: str) -> Encoder:
    """The generator that a run of `--method pix2pix` trained; any other folder is an error."""
    train = "train one with `cuewise pretrain DATA --method pix2pix --out G`"
    if not Path(folder).is_dir():
        raise UserError(f"--generator {folder}: there is no such run folder; {train}")
    encoder = load_encoder(folder, typed=False)
    if not isinstance(encoder.backbone, UNet) or encoder.card.method != "pix2pix":
        raise UserError(
            f"--generator {folder} is a run of {encoder.card.method or encoder.card.arch}, not of pix2pix; {train}"
        )
    return encoder


class Suppressor(nn.Module):
    """Generator and discriminator of a run, for images with the mean and deviation of another network.

    frozen  the generator stays unchanged, and there is no discriminator
    """

    mean: Tensor
    std: Tensor

    def __init__(self, folder: str, encoder: Encoder, size: int, frozen: bool) -> None:
        super().__init__()
        found = load_generator(folder)
        card = found.card
        if card.size != size:
            raise UserError(
                f"--generator {folder} was trained at {card.size} pixels and this run is at {size}: give --size {card.size}, "
                f"or train a generator with --size {size}"
            )
        assert isinstance(found.backbone, UNet)
        self.generator, self.frozen = found.backbone.requires_grad_(not frozen), frozen
        settings: dict[str, Any] = card.cues["generator"]
        self.target, self.weight = Target.of(settings, size), float(settings["weight"])
        for name, value in (("mean", encoder.card.mean), ("std", encoder.card.std)):
            self.register_buffer(name, torch.tensor(value).view(1, 3, 1, 1), persistent=False)
        if not frozen:
            self.discriminator = PatchGAN(settings["patch"] or patch_of(size), settings["critic_width"])
            state = part_of_checkpoint(Path(folder) / "checkpoints" / "last.ckpt", "discriminator.")
            self.discriminator.load_state_dict(state)

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Normalised images → what the generator makes of them, normalised alike; and the losses of pix2pix (none if frozen)."""
        source = (x * self.std + self.mean) * 2 - 1  # −1…1
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            made, _ = self.generator.translate(source)
        losses = {} if self.frozen else gan_losses(self.discriminator, source, self.target(source), made)
        return ((made + 1) / 2 - self.mean) / self.std, losses
