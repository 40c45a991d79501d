"""Batch norm in groups: each part as if it were alone, running statistics included, in every kind of memory and number."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from cuewise.encoders.momentum import GroupedBatchNorm2d, momentum_copy


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_equal_to_one_forward_a_part(
    groups: int, channels_last: bool, dtype: torch.dtype, momentum: float | None
) -> None:
    plain = nn.BatchNorm2d(5, momentum=momentum).to(dtype).train()
    with torch.no_grad():
        plain.weight.normal_()
        plain.bias.normal_()
    norm = momentum_copy(nn.Sequential(copy.deepcopy(plain)))[0]
    assert isinstance(norm, GroupedBatchNorm2d)
    norm.groups = groups
    x = torch.randn(7, 5, 4, 6, dtype=dtype)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        for _ in range(2):
            expected = torch.cat([plain(part) for part in x.chunk(groups)])
            found = norm(x)
    torch.testing.assert_close(found, expected)
    assert found.is_contiguous(memory_format=torch.channels_last) == channels_last
    for ours, theirs in zip(norm.buffers(), plain.buffers()):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(norm.eval()(x), plain.eval()(x))
