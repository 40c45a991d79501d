"""1×1 convolutions with a stride and few channels, as torch computes them on a processor.

For images stored channels last, oneDNN's weight gradient of such a convolution writes past its workspace where the input has
fewer channels than a vector register (16 floats at most): a crash, a hang or wrong weights (uxlfoundation/oneDNN#6035).
A 1×1 convolution with stride s is one with stride 1 of every s-th pixel, which takes another path.
"""

from __future__ import annotations

from torch import Tensor, nn

LANES = 16  # floats of the widest vector register


class EverySthPixel(nn.Conv2d):
    """A strided 1×1 convolution that leaves out the pixels in between first; weights and results are those of nn.Conv2d."""

    def forward(self, x: Tensor) -> Tensor:
        down, right = self.stride
        return nn.functional.conv2d(x[..., ::down, ::right], self.weight, self.bias)


def avoid_overrun(backbone: nn.Module) -> None:
    """Compute the convolutions that oneDNN cannot in the other way."""
    for part in backbone.modules():
        if type(part) is nn.Conv2d and affected(part):
            part.__class__ = EverySthPixel


def affected(conv: nn.Conv2d) -> bool:
    plain = conv.kernel_size == (1, 1) and conv.padding in ((0, 0), "valid") and conv.groups == 1
    return plain and max(conv.stride) > 1 and conv.in_channels < LANES
