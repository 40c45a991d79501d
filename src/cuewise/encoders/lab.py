"""Two encoders of one architecture side by side, one of lightness and one of colours: a model of RGB images again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cuewise.encoders.card import IMAGENET_MEAN, IMAGENET_STD
from cuewise.encoders.pooling import Features, find_last_map, map_and_pooled, pooled

_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
_WHITE = (0.950456, 1.0, 1.088754)  # D65
# rows: lightness and two colour differences of non-linear RGB in 0…1
_YCBCR = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))  # ITU-R BT.601
_YDBDR = ((0.299, 0.587, 0.114), (-0.450, -0.883, 1.333), (-1.333, 1.116, 0.217))  # SECAM


def rgb_to_lab(rgb: Tensor) -> Tensor:
    """sRGB B×3×H×W in 0…1 → CIE L*a*b* (D65): L in 0…100, a and b about ±100; in float32 also under autocast."""
    with torch.autocast(rgb.device.type, enabled=False):
        rgb = rgb if rgb.dtype == torch.float64 else rgb.float()
        linear = torch.where(rgb > 0.04045, ((rgb.clamp_min(0) + 0.055) / 1.055) ** 2.4, rgb / 12.92)
        matrix = rgb.new_tensor(_XYZ) / rgb.new_tensor(_WHITE).unsqueeze(1)
        xyz = torch.einsum("ij,bjhw->bihw", matrix, linear)
        f = torch.where(xyz > 0.008856, xyz.clamp_min(1e-6) ** (1 / 3), 7.787 * xyz + 16 / 116)
        x, y, z = f.unbind(1)
        return torch.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], dim=1)


def _linear(matrix: Sequence[Sequence[float]]) -> Callable[[Tensor], Tensor]:
    def convert(rgb: Tensor) -> Tensor:
        with torch.autocast(rgb.device.type, enabled=False):
            rgb = rgb if rgb.dtype == torch.float64 else rgb.float()
            return torch.einsum("ij,bjhw->bihw", rgb.new_tensor(matrix), rgb)

    return convert


class ColorSpace(NamedTuple):
    """A conversion from RGB, and the middle and half of the range of its channels over all colours."""

    convert: Callable[[Tensor], Tensor]
    middle: tuple[float, float, float]
    half: tuple[float, float, float]


SPACES = {
    "lab": ColorSpace(rgb_to_lab, (50.0, 6.025, -6.689), (50.0, 92.208, 101.167)),
    "ycbcr": ColorSpace(_linear(_YCBCR), (0.5, 0.0, 0.0), (0.5, 0.5, 0.5)),
    "ydbdr": ColorSpace(_linear(_YDBDR), (0.5, 0.0, 0.0), (0.5, 1.333, 1.333)),
}


class LabPair(nn.Module):
    """features of L and of ab, concatenated: B×2D; with `space` of Y and of CbCr or DbDr instead.

    Takes images normalised with mean and std, as every encoder does. The backbones keep their own three input channels:
    L comes three times, ab with a third channel of zeros, which is the same as stems of one and of two channels.
    """

    def __init__(
        self,
        L: nn.Module,
        ab: nn.Module,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        space: str = "lab",
    ) -> None:
        super().__init__()
        self.L, self.ab = L, ab
        self.mean, self.std, self.space = tuple(mean), tuple(std), space
        self._last_map: tuple[str | None] | None = None

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The two inputs, each B×3×H×W in about −1…1, in float32 at least."""
        x = x if x.dtype == torch.float64 else x.float()
        space = SPACES[self.space]
        mean, std, middle, half = (
            x.new_tensor(v).view(1, 3, 1, 1) for v in (self.mean, self.std, space.middle, space.half)
        )
        lab = (space.convert(x * std + mean) - middle) / half
        ab = torch.cat([lab[:, 1:], torch.zeros_like(lab[:, :1])], dim=1)
        return lab[:, :1].expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last), ab.contiguous(
            memory_format=torch.channels_last
        )

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features of L and of ab, B×D each."""
        L, ab = self.split(x)
        return pooled(self.L, L), pooled(self.ab, ab)

    def map_and_pooled(self, x: Tensor) -> Features:
        """The maps of both, and the features of both, side by side."""
        if self._last_map is None:
            self._last_map = (find_last_map(self.L, x.shape[-1], "cuewise/lab"),)  # of both: one architecture
        parts = zip((self.L, self.ab), self.split(x))
        found = [map_and_pooled(net, part, *self._last_map) for net, part in parts]
        return Features(torch.cat([f.map for f in found], dim=1), torch.cat([f.pooled for f in found], dim=1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(self.both(x), dim=1)
