"""Strided 1×1 convolutions of few channels: the same results by another path."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

from cuewise.encoders import load_encoder
from cuewise.encoders.strided import EverySthPixel, affected, avoid_overrun


@pytest.mark.parametrize(("stride", "side"), [((2, 2), 8), ((2, 2), 7), ((3, 2), 9), ((2, 1), 6)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_equals_torchs_own(stride: tuple[int, int], side: int, bias: bool) -> None:
    """In torch's plain order, which is computed rightly: outputs and all gradients."""
    torch.manual_seed(0)
    conv = nn.Conv2d(8, 5, 1, stride, bias=bias).double()
    other = copy.deepcopy(conv)
    avoid_overrun(other)
    assert isinstance(other, EverySthPixel)
    x = torch.randn(2, 8, side, side, dtype=torch.double, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    out, found = conv(x), other(y)
    torch.testing.assert_close(found, out)
    weights = torch.randn_like(out)
    (out * weights).sum().backward()
    (found * weights).sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
    for own, plain in zip(other.parameters(), conv.parameters(), strict=True):
        torch.testing.assert_close(own.grad, plain.grad)
    assert other.state_dict().keys() == conv.state_dict().keys()


@pytest.mark.parametrize(
    "conv",
    [
        nn.Conv2d(16, 32, 1, 2),  # as many channels as lanes
        nn.Conv2d(8, 8, 1),
        nn.Conv2d(8, 8, 3, 2),
        nn.Conv2d(8, 8, 1, 2, padding=1),
        nn.Conv2d(8, 8, 1, 2, groups=8),
    ],
)
def test_others_stay(conv: nn.Conv2d) -> None:
    assert not affected(conv)
    avoid_overrun(conv)
    assert type(conv) is nn.Conv2d


def test_a_narrow_network_learns_from_larger_images() -> None:
    """Its gradient wrote past its memory: 8 channels at 64 pixels, channels last. In a process that may die of it."""
    encoder = load_encoder("cuewise/resnet-tiny?width=8")
    assert sum(isinstance(part, EverySthPixel) for part in encoder.modules()) == 1
    script = """
import torch
from cuewise.encoders import load_encoder
encoder = load_encoder("cuewise/resnet-tiny?width=8").train()
for _ in range(20):
    x = torch.randn(8, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    encoder(x).square().mean().backward()
    kept = [torch.randn(n) for n in (100, 1000, 5000, 50000)]
print("whole")
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert done.stdout.split()[-1:] == ["whole"], done.stderr[-500:]
