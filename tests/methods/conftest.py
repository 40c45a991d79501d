"""Small encoders and batches for methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cuewise.data import Batch
from cuewise.encoders import Encoder
from cuewise.encoders.load import build
from cuewise.methods import Method, Negatives, Setup, method
from cuewise.methods.hard import Hard

SMALL: dict[str, dict[str, Any]] = {
    "moco": {"queue": 50, "dim": 16, "momentum": 0.9},
    "simclr": {"hidden": 32, "dim": 16},
    "byol": {"hidden": 32, "dim": 16},
    "looc": {"queue": 50, "dim": 16, "momentum": 0.9},
    "addone": {"queue": 50, "dim": 16, "momentum": 0.9},
    "moco++": {"queue": 50, "dim": 16, "momentum": 0.9, "heads": 2},
    "supervised": {},
    "insdis": {"images": 24, "noise": 16, "dim": 16},
    "cmc": {"images": 24, "noise": 16, "dim": 16, "loss": "softmax"},
    "densecl": {"queue": 50, "dim": 16, "momentum": 0.9},
    "infomin": {"queue": 50, "dim": 16, "momentum": 0.9},
    "can": {"hidden": 32, "dim": 16, "decoder_depth": 1},
    "mae": {"decoder_depth": 1},
}
TRANSFORMERS = ("can", "mae")  # methods that need patch tokens

LEFT_OUT: tuple[str, ...] = ("color", "rotation")  # by the methods that take --leave-out


def small_method(
    name: str,
    *,
    negatives: Negatives | None = None,
    norm: str = "batch",
    seed: int = 0,
    leave_out: tuple[str, ...] | None = None,
    hard: Hard | None = None,
    transformer: bool | None = None,
    **settings: Any,
) -> Method:
    torch.manual_seed(seed)
    encoder = small_encoder(name in TRANSFORMERS if transformer is None else transformer, norm)
    kind = method(name)
    if leave_out is None:
        leave_out = LEFT_OUT if kind.leaves_out else ()
    values = kind.Settings(**{**SMALL.get(name, {}), **settings})
    setup = Setup(values, negatives or Negatives(), leave_out, hard, size=16, classes=4)
    kind.check(setup)
    return kind(encoder, setup, seed=seed)


def small_encoder(transformer: bool, norm: str = "batch") -> Encoder:
    """16 patches of 4×4 pixels, or a small residual network."""
    if transformer:
        return build("cuewise/vit-tiny", {"width": 64, "depth": 1}, size=16)
    return build("cuewise/resnet-tiny", {"width": 8, "norm": norm}, size=16)


def roles_of(m: Method) -> list[str]:
    return [view.role for view in type(m).shown(m.setup)]


def small_batch(m: Method, batch: int = 8, size: int = 16, seed: int = 0) -> Batch:
    g = torch.Generator().manual_seed(seed)
    views = {role: torch.randn(batch, 3, size, size, generator=g) for role in roles_of(m)}
    for i in range(len(m.negatives.images)):
        for source in type(m).negatives_from:
            role = m.negatives.roles(source)[i]
            views[role] = torch.randn(batch, m.negatives.count, 3, size, size, generator=g)
    facts = {"label": torch.arange(batch) % 4}
    return Batch(views, torch.randperm(24, generator=g)[:batch], facts)


def in_double(batch: Batch, rows: slice = slice(None)) -> Batch:
    """Some rows of a batch, in double precision."""
    views = {role: x[rows].double() for role, x in batch.views.items()}
    facts = {name: value[rows] for name, value in batch.facts.items()}
    return Batch(views, batch.index[rows], facts)


@pytest.fixture
def make():  # type: ignore[no-untyped-def]
    return small_method


@pytest.fixture
def batch():  # type: ignore[no-untyped-def]
    return small_batch
