"""Small encoders and batches for methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from cuewise.encoders import Encoder
from cuewise.encoders.load import build
from cuewise.methods import Method, Negatives, method, negative_role

SMALL: dict[str, dict[str, Any]] = {
    "moco": {"queue": 50, "dim": 16, "momentum": 0.9},
    "simclr": {"hidden": 32, "dim": 16},
    "byol": {"hidden": 32, "dim": 16},
    "supervised": {},
}


def small_method(
    name: str, *, negatives: Negatives | None = None, norm: str = "batch", seed: int = 0, **settings: Any
) -> Method:
    torch.manual_seed(seed)
    encoder: Encoder = build("cuewise/resnet-tiny", {"width": 8, "norm": norm}, size=16)
    kind = method(name)
    return kind(
        encoder, kind.Settings(**{**SMALL.get(name, {}), **settings}), negatives, seed=seed, classes=4
    )


def small_batch(m: Method, batch: int = 8, size: int = 16, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    g = torch.Generator().manual_seed(seed)
    views = {role: torch.randn(batch, 3, size, size, generator=g) for role in type(m).views}
    for kind in m.negatives.images:
        for source in type(m).negatives_from:
            views[negative_role(kind, source)] = torch.randn(
                batch, m.negatives.count, 3, size, size, generator=g
            )
    return views, torch.arange(batch) % 4


@pytest.fixture
def make():  # type: ignore[no-untyped-def]
    return small_method


@pytest.fixture
def batch():  # type: ignore[no-untyped-def]
    return small_batch
