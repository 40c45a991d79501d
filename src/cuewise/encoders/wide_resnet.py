"""wrn40-2: the wide ResNet of CIFAR experiments, for images of 32 to 64 pixels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.resnet_tiny import Trunk
from cuewise.errors import UserError

DEPTH, WIDEN = 40, 2


class WideBlock(nn.Module):
    """Norm and ReLU before each of two 3×3 convolutions, dropout between them."""

    def __init__(self, inputs: int, out: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, out, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        same = stride == 1 and inputs == out
        self.shortcut = None if same else nn.Conv2d(inputs, out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.bn1(x))
        skip = x if self.shortcut is None else self.shortcut(h)
        h = self.conv1(h)
        return torch.add(skip, self.conv2(self.dropout(F.relu(self.bn2(h)))))


class WideResNet(Trunk):
    """3×3 stem, three stages of (depth − 4) / 6 blocks, widths 16·widen, 32·widen, 64·widen.

    dropout  inside each block
    Zagoruyko & Komodakis 2016.
    """

    def __init__(self, dropout: float = 0.3, depth: int = DEPTH, widen: int = WIDEN) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise UserError(f"cuewise/wrn40-2: dropout {dropout}: from 0 to below 1")
        blocks = (depth - 4) // 6
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        inputs = 16
        for stage in range(3):
            out = 16 * widen * 2**stage
            first = WideBlock(inputs, out, 1 if stage == 0 else 2, dropout)
            rest = (WideBlock(out, out, 1, dropout) for _ in range(blocks - 1))
            self.add_module(f"layer{stage + 1}", nn.Sequential(first, *rest))
            inputs = out
        self.bn = nn.BatchNorm2d(inputs)
        self.num_features = inputs
        self.fc = nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward_features(self, x: Tensor) -> Tensor:
        """B×64·widen×h×w feature map."""
        x = self.conv1(x)
        for stage in range(1, 4):
            x = self.get_submodule(f"layer{stage}")(x)
        return F.relu(self.bn(x))
