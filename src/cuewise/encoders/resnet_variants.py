"""torchvision's ResNets with a 3×3 stem for small images, or with fewer channels; its AlexNet for tiles."""

from __future__ import annotations

from typing import Any

from torch import nn
from torchvision.models.alexnet import AlexNet
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

from cuewise.errors import UserError

LAYERS: dict[str, tuple[type[BasicBlock | Bottleneck], list[int]]] = {
    "resnet18": (BasicBlock, [2, 2, 2, 2]),
    "resnet34": (BasicBlock, [3, 4, 6, 3]),
    "resnet50": (Bottleneck, [3, 4, 6, 3]),
    "resnet101": (Bottleneck, [3, 4, 23, 3]),
    "resnet152": (Bottleneck, [3, 8, 36, 3]),
}
CHANNELS = 64  # of torchvision's stem


class NarrowResNet(ResNet):  # type: ignore[misc]
    """A ResNet of `width` times the channels everywhere (Tian et al. 2020: two of width 0.5 for L and ab)."""

    def __init__(self, name: str, width: float, num_classes: int, **options: Any) -> None:
        block, layers = LAYERS[name]
        self.width = width
        super().__init__(block, layers, num_classes=num_classes, **options)
        self.fc = nn.Linear(int(512 * width) * block.expansion, num_classes)

    def _make_layer(self, block: Any, planes: int, *args: Any, **kwargs: Any) -> nn.Sequential:
        if planes == CHANNELS:  # the first stage: the stem before it gets narrower too
            self.inplanes = int(CHANNELS * self.width)
            self.conv1 = nn.Conv2d(3, self.inplanes, 7, stride=2, padding=3, bias=False)
            self.bn1 = self._norm_layer(self.inplanes)
        return super()._make_layer(block, int(planes * self.width), *args, **kwargs)


def narrow(name: str, width: Any, num_classes: int, options: dict[str, Any]) -> nn.Module:
    """torchvision/NAME?width=0.5."""
    fits = isinstance(width, int | float) and 0 < width <= 4 and (CHANNELS * width) % 8 == 0
    if name not in LAYERS or not fits:
        raise UserError(
            f"torchvision/{name}?width={width}: {', '.join(LAYERS)} take a width such as 0.5, a multiple of 0.125"
        )
    return NarrowResNet(name, float(width), num_classes, **options)


def set_stem(model: nn.Module, name: str, stem: Any) -> None:
    """`stem=3x3`: a 3×3 convolution of stride 1 and no pooling, as SimCLR on CIFAR-10 and STL-10.

    AlexNet takes `stem=stride2`: its first convolution with stride 2 instead of 4, as Jigsaw on tiles of 64 pixels; weights
    fit both.
    """
    if isinstance(model, AlexNet):
        if stem not in ("stride2", "stride4"):
            raise UserError(
                f"torchvision/{name}?stem={stem}: AlexNet takes the stems stride4 (its own) and stride2"
            )
        model.features[0].stride = (2, 2) if stem == "stride2" else (4, 4)
        return
    if stem not in ("3x3", "7x7") or not isinstance(model, ResNet):
        raise UserError(f"torchvision/{name}?stem={stem}: ResNets take the stems 7x7 (their own) and 3x3")
    if stem == "3x3":
        model.conv1 = nn.Conv2d(3, model.conv1.out_channels, 3, stride=1, padding=1, bias=False)
        nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
        model.maxpool = nn.Identity()
