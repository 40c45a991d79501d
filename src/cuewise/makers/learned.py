"""The set of what a trained generator makes of each image. torch is imported when it is needed: other makers do not import it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError
from cuewise.makers.layout import MakerTask
from cuewise.makers.maker import Maker, Picture, item_seed

if TYPE_CHECKING:
    from cuewise.encoders.unet import UNet


@dataclass(frozen=True)
class Learned(Maker):
    """Each image in its own size through the generator, which takes any size. Nothing is random.

    weights  is filled in: a set that was started with one generator is not continued with another
    """

    name = "learned"
    summary = "less texture, by a trained generator (--method pix2pix)"
    generator: Annotated[str, "the run folder of `pretrain --method pix2pix`"] = ""
    weights: Annotated[str, "SHA-256 of its weights [those that are there]"] = ""

    def prepared(self, seed: int) -> Self:
        if not self.generator:
            raise UserError(
                "make learned needs a generator: add --generator G, the --out of --method pix2pix"
            )
        from cuewise.encoders.card import weights_of_file

        loaded(self.generator, self.weights)  # or an error
        own = weights_of_file(Path(self.generator) / "encoder.safetensors")["sha256"]
        if self.weights not in ("", own):
            raise UserError(
                f"make learned: the weights in {self.generator} are not those of weights={self.weights[:12]}…; "
                "take the generator that the set was started with, or --overwrite"
            )
        return replace(self, weights=own)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        image = generated(piece.image(), loaded(self.generator, self.weights))
        yield Picture(image, item_seed(seed, self.name, piece.names[0]))


@cache
def loaded(folder: str, weights: str) -> UNet:
    """The generator, once per process."""
    from cuewise.encoders.unet import UNet
    from cuewise.methods.suppressor import load_generator

    net = load_generator(folder).backbone.eval()
    assert isinstance(net, UNet)
    return net


def generated(image: NDArray[np.uint8], net: UNet) -> NDArray[np.uint8]:
    """H×W×3 → H×W×3, on one thread: workers are forked, which a pool of threads does not survive."""
    import torch

    from cuewise.methods.pix2pix import to_pixels

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            x = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 127.5 - 1
            return to_pixels(net.translate(x)[0])[0]
    finally:
        torch.set_num_threads(threads)
