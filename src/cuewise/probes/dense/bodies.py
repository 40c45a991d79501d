"""Backbones of a detector: C4 of a ResNet, a feature pyramid of any network with several maps, a simple one of one map."""

from __future__ import annotations

import math
from collections import OrderedDict

import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.ops import FeaturePyramidNetwork
from torchvision.ops.feature_pyramid_network import LastLevelMaxPool

from cuewise.encoders import Encoder
from cuewise.encoders.maps import Maps, is_resnet
from cuewise.errors import UserError
from cuewise.probes.dense.fcn import resnet_until


class C4(nn.Module):
    """conv1 … layer3 of a ResNet, one map; layer4 becomes the head of the boxes."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if not is_resnet(encoder.backbone):
            raise UserError(
                f"--body c4 needs a ResNet (stages layer1 … layer4), and {encoder.card.arch} is none: use --body fpn"
            )
        maps = Maps(encoder, finest=1)
        self.backbone = encoder.backbone
        self.out_channels, self.strides = maps.channels[-2], [maps.strides[-2]]
        self.square, self.divisor = None, max(32, maps.strides[-1])

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        return OrderedDict([("0", resnet_until(self.backbone, x, 3))])


class Layer4Head(nn.Module):
    """layer4 on the 14×14 of every box, one more batch norm, and the mean over places."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.layer4 = encoder.backbone.get_submodule("layer4")
        self.channels = Maps(encoder, finest=1).channels[-1]
        self.norm = nn.BatchNorm2d(self.channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.layer4(x)).mean((2, 3))  # type: ignore[no-any-return]


class Pyramid(nn.Module):
    """Top-down pyramid over the network's maps, and one coarser level."""

    def __init__(self, encoder: Encoder, channels: int, finest: int | None = None) -> None:
        super().__init__()
        self.maps = Maps(encoder, finest)
        self.square = self.maps.square
        self.out_channels = channels
        if self.square is None:
            self.fpn: nn.Module = FeaturePyramidNetwork(self.maps.channels, channels, LastLevelMaxPool())
            self.strides = [*self.maps.strides, 2 * self.maps.strides[-1]]
            self.divisor = max(32, self.maps.strides[-1])
        else:
            self.fpn = SimplePyramid(self.maps.channels[0], self.maps.strides[0], channels, self.square)
            self.strides = self.fpn.strides
            self.divisor = math.lcm(*self.strides)

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        if self.square is None:
            maps = OrderedDict((str(i), m) for i, m in enumerate(self.maps(x)))
            return self.fpn(maps)  # type: ignore[no-any-return]
        height, width = x.shape[2:]
        # positions are those of one size
        padded = F.pad(x, (0, self.square - width, 0, self.square - height))
        maps = self.fpn(self.maps(padded)[0])
        cut = [m[:, :, : height // s, : width // s] for m, s in zip(maps, self.strides)]
        return OrderedDict((str(i), m) for i, m in enumerate(cut))


class SimplePyramid(nn.Module):
    """Four resolutions made of one map by transposed convolutions and pooling, without a top-down path (ViTDet)."""

    def __init__(self, channels: int, stride: int, out: int, side: int) -> None:
        super().__init__()
        half, quarter = channels // 2, channels // 4
        # stride, how it is made, channels, whether it is exact
        levels: list[tuple[int, nn.Module, int, bool]] = [
            (
                stride // 4,
                nn.Sequential(_up(channels, half), nn.GELU(), _up(half, quarter)),
                quarter,
                stride % 4 == 0,
            ),
            (stride // 2, _up(channels, half), half, stride % 2 == 0),
            (stride, nn.Identity(), channels, True),
            (2 * stride, nn.MaxPool2d(2), channels, side % (2 * stride) == 0),
        ]
        kept = [(s, m, w) for s, m, w, exact in levels if exact and s >= 2]
        self.strides = [s for s, _, _ in kept]
        self.levels = nn.ModuleList(
            nn.Sequential(m, nn.Conv2d(w, out, 1), nn.GroupNorm(1, out), nn.Conv2d(out, out, 3, padding=1))
            for _, m, w in kept
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        return [level(x) for level in self.levels]


def _up(inputs: int, out: int) -> nn.Module:
    return nn.ConvTranspose2d(inputs, out, 2, stride=2)
