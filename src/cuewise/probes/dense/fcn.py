"""FCN: torchvision's head on a backbone whose last stages are dilated, with an auxiliary head before them."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn
from torchvision.models.segmentation.fcn import FCN, FCNHead

from cuewise.encoders import Encoder
from cuewise.encoders.maps import Maps, is_resnet
from cuewise.probes.dense.fit import seeded

FINE = 8  # stride to which a ResNet is dilated


class TwoMaps(nn.Module):
    """The last map as "out" and the one before it as "aux"."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        maps = Maps(encoder, finest=1)
        self.stride = maps.strides[-1]
        if is_resnet(encoder.backbone) and self.stride > FINE and dilate(encoder.backbone):
            maps, self.stride = _StageMaps(encoder, maps.channels), FINE  # type: ignore[assignment]
        self.maps = maps
        self.channels = (maps.channels[-1], maps.channels[-2:][0])  # one map is both
        self.square: int | None = getattr(maps, "square", None)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found = self.maps(x)
        return {"out": found[-1], "aux": found[-2:][0]}


class _StageMaps(nn.Module):
    """layer3 and layer4 of a ResNet."""

    def __init__(self, encoder: Encoder, channels: list[int]) -> None:
        super().__init__()
        self.encoder, self.channels = encoder, channels[-2:]

    def forward(self, x: Tensor) -> list[Tensor]:
        fine = resnet_until(self.encoder.backbone, x, 3)
        net: Any = self.encoder.backbone
        return [fine, net.layer4(fine)]


def resnet_until(backbone: nn.Module, x: Tensor, last: int) -> Tensor:
    """The stem and the stages up to `last` of a ResNet."""
    net: Any = backbone
    x = net.bn1(net.conv1(x))
    x = net.relu(x) if hasattr(net, "relu") else net.act1(x)
    if hasattr(net, "maxpool"):
        x = net.maxpool(x)
    for stage in range(1, last + 1):
        x = getattr(net, f"layer{stage}")(x)
    return x


def dilate(backbone: nn.Module) -> bool:
    """Strides of layer3 and layer4 become dilation, as torchvision builds it; False where a stage strides otherwise."""
    net: Any = backbone
    stages = [net.layer3, net.layer4]
    if any(isinstance(m, nn.AvgPool2d | nn.MaxPool2d) for stage in stages for m in stage.modules()):
        return False
    before = 1
    for stage in stages:
        for number, block in enumerate(stage):
            for conv in (m for m in block.modules() if isinstance(m, nn.Conv2d)):
                factor = before if number == 0 else 2 * before
                conv.stride = (1, 1)
                if conv.kernel_size == (3, 3):
                    conv.dilation = conv.padding = (factor, factor)
        before *= 2
    return True


def build_fcn(encoder: Encoder, classes: int, auxiliary: bool, seed: int) -> FCN:
    """A copy of the encoder with one FCN head, or two."""
    body = TwoMaps(copy.deepcopy(encoder).requires_grad_(True))
    with seeded(seed):
        head = FCNHead(body.channels[0], classes)
        aux = FCNHead(body.channels[1], classes) if auxiliary else None
    return FCN(body, head, aux)
