"""resnet-tiny: a ResNet for images of 64 pixels and less on a CPU, with torchvision's key names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import timm.models
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock

from cuewise.errors import UserError

BLOCKS = {10: (1, 1, 1, 1), 14: (1, 2, 2, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}


class Trunk(nn.Module):
    """The part that networks of cuewise share: a feature map, pooled, and a classifier or none, in timm's names."""

    num_features: int
    fc: nn.Module

    def forward_features(self, x: Tensor) -> Tensor:
        """The feature map."""
        raise NotImplementedError

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Pooled features, or logits where there is a head."""
        x = x.mean(dim=(2, 3))
        return x if pre_logits else self.fc(x)

    def get_classifier(self) -> nn.Module:
        return self.fc

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        self.fc = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))


class ResNetTiny(Trunk):
    """3×3 stem without pooling, four stages of torchvision's BasicBlock, widths w, 2w, 4w, 8w.

    width  channels of the first stage
    depth  10, 14, 18 or 34, counted as in the ResNet paper
    norm   "batch", or "group" (8 groups), which makes every image independent of its batch
    """

    def __init__(self, width: int = 32, depth: int = 10, norm: str = "batch", num_classes: int = 0) -> None:
        super().__init__()
        if depth not in BLOCKS or norm not in ("batch", "group") or width % 8:
            raise UserError(
                f"cuewise/resnet-tiny: depth {depth} (one of {', '.join(map(str, BLOCKS))}), norm {norm!r} (batch or "
                f"group), width {width} (a multiple of 8)"
            )
        layer: Callable[..., nn.Module] = nn.BatchNorm2d if norm == "batch" else _group_norm
        self.num_features = 8 * width
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = layer(width)
        self.relu = nn.ReLU(inplace=True)
        inputs = width
        for stage, blocks in enumerate(BLOCKS[depth]):
            out, stride = width * 2**stage, 1 if stage == 0 else 2
            self.add_module(f"layer{stage + 1}", _stage(inputs, out, blocks, stride, layer))
            inputs = out
        self.fc = nn.Linear(inputs, num_classes) if num_classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward_features(self, x: Tensor) -> Tensor:
        """B×8w×h×w feature map."""
        x = self.relu(self.bn1(self.conv1(x)))
        for stage in range(1, 5):
            x = self.get_submodule(f"layer{stage}")(x)
        return x


def _group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(8, channels)


def _stage(inputs: int, out: int, blocks: int, stride: int, norm: Callable[..., nn.Module]) -> nn.Sequential:
    shortcut = None
    if stride != 1 or inputs != out:
        shortcut = nn.Sequential(nn.Conv2d(inputs, out, 1, stride, bias=False), norm(out))
    first = BasicBlock(inputs, out, stride, shortcut, norm_layer=norm)
    return nn.Sequential(first, *(BasicBlock(out, out, norm_layer=norm) for _ in range(blocks - 1)))


@timm.models.register_model
def cuewise_resnet_tiny(pretrained: bool = False, **kwargs: Any) -> ResNetTiny:
    """Lets timm.create_model("cuewise_resnet_tiny") build it once cuewise.encoders is imported."""
    if pretrained:
        raise UserError("cuewise/resnet-tiny has no published weights; load your own with load_state_dict")
    options = {k: v for k, v in kwargs.items() if k in ("width", "depth", "norm", "num_classes")}
    return ResNetTiny(**options)
