"""unet: an image-to-image network with skips, for images of any size; its inner half is an encoder."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.resnet_tiny import Trunk
from cuewise.errors import UserError

MOST = 8  # times the width: channels of the deepest levels


def unet_depth(size: int) -> int:
    """Levels that suit an image of that side: ⌊log₂ size⌋ − 2, at least 1; an image of 32 pixels ends at 4×4."""
    return max(1, int(math.log2(size)) - 2)


class UNet(Trunk):
    """Strided 4×4 convolutions down, transposed ones up, the map of each level joined to the way up (Isola et al. 2017).

    Images are in −1…1. They are padded to a multiple of 2^depth and cut back, so that any size will do. Norms are those of
    each image alone, as published at batch size 1: what becomes of an image does not depend on its batch. The first and the
    innermost level have none (a map of 1×1 has no statistics).

    width     channels of the first level
    depth     levels; by default those that suit `size`
    residual  the output is the change of the image rather than the image, and begins as no change
    """

    def __init__(
        self, size: int = 32, width: int = 32, depth: int | None = None, residual: bool = True
    ) -> None:
        super().__init__()
        self.depth = unet_depth(size) if depth is None else depth
        self.residual = residual
        if width < 1 or self.depth < 1:
            raise UserError(f"cuewise/unet: width {width} and depth {self.depth} must be 1 or more")
        widths = [width * min(2**i, MOST) for i in range(self.depth)]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for i, out in enumerate(widths):
            inputs = 3 if i == 0 else widths[i - 1]
            normed = 0 < i < self.depth - 1
            self.down.append(_block(nn.Conv2d(inputs, out, 4, 2, 1), out if normed else 0, nn.LeakyReLU(0.2)))
        for i in reversed(range(1, self.depth)):
            inputs = widths[i] * (1 if i == self.depth - 1 else 2)
            self.up.append(
                _block(nn.ConvTranspose2d(inputs, widths[i - 1], 4, 2, 1), widths[i - 1], nn.ReLU())
            )
        self.last = nn.ConvTranspose2d(widths[0] * (1 if self.depth == 1 else 2), 3, 4, 2, 1)
        self.num_features = widths[-1]
        self.fc = nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
                nn.init.normal_(module.weight, 0.0, 0.02)
        if residual:
            nn.init.zeros_(self.last.weight)
            nn.init.zeros_(self.last.bias)  # type: ignore[arg-type]

    def levels(self, x: Tensor) -> list[Tensor]:
        """The maps of all levels, from the first to the innermost."""
        found = []
        for block in self.down:
            x = block(x)
            found.append(x)
        return found

    def translate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The image N×3×H×W in −1…1 that x becomes, and the innermost map."""
        height, width = x.shape[-2:]
        bottom, right = (-side % 2**self.depth for side in (height, width))
        padded = F.pad(x, (0, right, 0, bottom), mode="replicate") if bottom or right else x
        levels = self.levels(padded)
        h = levels[-1]
        for block, skip in zip(self.up, reversed(levels[:-1])):
            h = torch.cat([block(h), skip], dim=1)
        out = torch.tanh(self.last(h))[..., :height, :width]
        if self.residual:
            out = (x + 2 * out).clamp(-1, 1)
        return out, levels[-1]

    def forward_features(self, x: Tensor) -> Tensor:
        """The innermost map."""
        bottom, right = (-side % 2**self.depth for side in x.shape[-2:])
        return self.levels(F.pad(x, (0, right, 0, bottom), mode="replicate"))[-1]


class PatchGAN(nn.Module):
    """Whether each patch of an image is real, given its source: N×6×H×W (both side by side) → N×1×h×w logits.

    field  side of the patches in pixels: 16, 34 or 70
    """

    FIELDS = {16: 1, 34: 2, 70: 3}  # → strided convolutions

    def __init__(self, field: int = 16, width: int = 64) -> None:
        super().__init__()
        layers, inputs = [], 6
        for i in range(self.FIELDS[field] + 1):
            out = width * min(2**i, MOST)
            stride = 2 if i < self.FIELDS[field] else 1
            layers.append(_block(nn.Conv2d(inputs, out, 4, stride, 1), out if i else 0, nn.LeakyReLU(0.2)))
            inputs = out
        self.layers = nn.Sequential(*layers, nn.Conv2d(inputs, 1, 4, 1, 1))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, 0.0, 0.02)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def _block(conv: nn.Module, normed: int, active: nn.Module) -> nn.Sequential:
    norm = [nn.InstanceNorm2d(normed, affine=True)] if normed else []
    return nn.Sequential(conv, *norm, active)
