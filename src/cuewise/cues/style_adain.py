"""Adaptive instance normalisation with weights from disk: VGG-19 up to relu4_1 and its mirrored decoder.

X. Huang, S. Belongie, "Arbitrary Style Transfer in Real-time with Adaptive Instance Normalization", ICCV 2017.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from cuewise.errors import UserError

Bytes = NDArray[np.uint8]
Layers = list[tuple[Tensor, Tensor]]  # weight, bias of each convolution
Layer = tuple[int, int] | str  # input and output channels of a 3×3 convolution, or what happens between two


def _plan(channels: int, *steps: int | str) -> tuple[Layer, ...]:
    """Convolutions by their output channels, the first on `channels`."""
    outputs = [channels, *(step for step in steps if not isinstance(step, str))]
    pairs = iter(pairwise(outputs))
    return tuple(step if isinstance(step, str) else next(pairs) for step in steps)


ENCODER = _plan(3, 64, 64, "pool", 128, 128, "pool", 256, 256, 256, 256, "pool", 512)
DECODER = _plan(512, 256, "grow", 256, 256, 256, 128, "grow", 128, 64, "grow", 64, 3)
SMALLEST = 32  # below, the deepest map has too few pixels to mirror at its border


def read_state(path: str | Path) -> dict[str, Tensor]:
    """A state dict from .pth/.pt (tensors only, no code is run) or .safetensors."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"style weights: no file {str(path)!r}; give the path of an AdaIN encoder or decoder")
    try:
        if path.suffix == ".safetensors":
            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(
            f"style weights: cannot read {str(path)!r} ({error}); it must hold tensors only"
        ) from error
    inner: Any = state.get("state_dict", state)
    return {key: value for key, value in inner.items() if isinstance(value, torch.Tensor)}


def convolutions(state: dict[str, Tensor], path: str | Path) -> Layers:
    """(weight, bias) of every convolution, in the order of the numbers in their names ("features.10.weight" after "5.weight")."""
    names = [
        key[: -len(".weight")] for key, value in state.items() if key.endswith(".weight") and value.ndim == 4
    ]
    names.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    missing = [name for name in names if f"{name}.bias" not in state]
    if missing:
        raise UserError(
            f"style weights: {str(path)!r} has no {missing[0]}.bias; is it an AdaIN encoder or decoder?"
        )
    return [(state[f"{name}.weight"].float(), state[f"{name}.bias"].float()) for name in names]


def check(layers: Layers, plan: tuple[Layer, ...], path: str | Path) -> Layers:
    """The first layers, which must be the 3×3 convolutions of the plan."""
    wanted = [step for step in plan if not isinstance(step, str)]
    for i, (inputs, outputs) in enumerate(wanted):
        shape = tuple(layers[i][0].shape) if i < len(layers) else None
        if shape != (outputs, inputs, 3, 3):
            raise UserError(
                f"style weights: convolution {i} of {str(path)!r} is {shape}, expected {(outputs, inputs, 3, 3)}: "
                "give VGG-19 up to relu4_1 as encoder and its mirror image as decoder"
            )
    return layers[: len(wanted)]


class AdaIN:
    """Style transfer with an encoder and a decoder; `__call__(image, style, strength)` on uint8 H×W×3."""

    def __init__(self, encoder: str | Path, decoder: str | Path) -> None:
        layers = convolutions(read_state(encoder), encoder)
        # published encoders begin with a 1×1 convolution that normalises the input; torchvision's want mean and std
        self.first = layers.pop(0) if layers and tuple(layers[0][0].shape) == (3, 3, 1, 1) else None
        self.encoder = check(layers, ENCODER, encoder)
        self.decoder = check(convolutions(read_state(decoder), decoder), DECODER, decoder)

    def __call__(self, image: Bytes, style: Bytes, strength: float) -> Bytes:
        with torch.inference_mode():
            c, s = self.features(_tensor(image)), self.features(_tensor(style))
            normalised = (c - c.mean(dim=(2, 3), keepdim=True)) / _spread(c)
            t = normalised * _spread(s) + s.mean(dim=(2, 3), keepdim=True)
            rgb = self.decode(c + strength * (t - c))[0].permute(1, 2, 0).numpy()
        out = np.clip(rgb * 255 + 0.5, 0, 255).astype(np.uint8)
        height, width = image.shape[:2]
        if min(height, width) < SMALLEST:
            return np.asarray(cv2.resize(out, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        return np.ascontiguousarray(out[:height, :width])  # pooling rounds up to multiples of eight

    def features(self, x: Tensor) -> Tensor:
        """1×3×H×W in 0..1 to relu4_1, 1×512×⌈H/8⌉×⌈W/8⌉."""
        if self.first is not None:
            x = F.conv2d(x, *self.first)
        else:
            mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
            x = (x - mean.view(1, 3, 1, 1)) / std.view(1, 3, 1, 1)
        layers = iter(self.encoder)
        for step in ENCODER:
            if step == "pool":
                x = F.max_pool2d(x, 2, 2, ceil_mode=True)
            else:
                x = F.relu(F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), *next(layers)))
        return x

    def decode(self, x: Tensor) -> Tensor:
        layers = iter(self.decoder)
        for i, step in enumerate(DECODER):
            if step == "grow":
                x = F.interpolate(x, scale_factor=2, mode="nearest")
                continue
            x = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), *next(layers))
            if i < len(DECODER) - 1:
                x = F.relu(x)
        return x


def _tensor(image: Bytes) -> Tensor:
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST:
        factor = SMALLEST / min(height, width)
        size = max(SMALLEST, round(width * factor)), max(SMALLEST, round(height * factor))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    return torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)[None]


def _spread(x: Tensor) -> Tensor:
    return (x.var(dim=(2, 3), keepdim=True) + 1e-5).sqrt()
