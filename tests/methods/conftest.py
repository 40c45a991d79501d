"""Small encoders and batches for methods."""

from __future__ import annotations

from typing import Any

import pytest

from cuewise.checks.method import Case, random_batch
from cuewise.data import Batch
from cuewise.methods import Method, Negatives, method

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
    "hcl": {"queue": 50, "dim": 16, "momentum": 0.9, "weight": 0.5},
    "densecl": {"queue": 50, "dim": 16, "momentum": 0.9},
    "infomin": {"queue": 50, "dim": 16, "momentum": 0.9},
    "can": {"hidden": 32, "dim": 16, "decoder_depth": 1},
    "mae": {"decoder_depth": 1},
    "jigsaw": {"permutations": 10, "hidden": 32},
    "tune": {"images": 0},
    "pix2pix": {"critic_width": 8, "weight": 1.0},
}
TRANSFORMERS = ("can", "mae")  # methods that need patch tokens

small_batch = random_batch


def small_method(name: str, *, negatives: Negatives | None = None, **how: Any) -> Method:
    """A method under its small settings; `how`: seed, norm, leave_out, hard, transformer, and settings."""
    transformer = how.pop("transformer", None)
    transformer = name in TRANSFORMERS if transformer is None else transformer
    return Case(method(name), SMALL.get(name, {}), transformer).build(negatives, **how)


def roles_of(m: Method) -> list[str]:
    return [view.role for view in type(m).shown(m.setup)]


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
