"""The embedded shapes as files, with what is known of each image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cuewise.data import Dataset
from cuewise.data.shapes import SHAPES, TEXTURES
from cuewise.make.layout import mirror
from cuewise.make.makers import Maker, Picture, Settings
from cuewise.make.plan import Piece, Plan

WORDS = {"shape": SHAPES, "texture": TEXTURES}


def lay(dataset: Dataset, settings: Settings, seed: int, end: str) -> Plan:
    """The set's own names, and its columns as facts."""
    plan = mirror(dataset, end)
    columns = {key: _words(key, column) for key, column in dataset.columns.items()}
    return replace(plan, facts={**plan.facts, **columns})


def _words(key: str, column: Any) -> Any:
    if key in WORDS and column.ndim == 1 and np.issubdtype(column.dtype, np.integer):
        return [WORDS[key][k] if k >= 0 else None for k in column.tolist()]
    return column


def draw(piece: Piece, settings: Settings, seed: int) -> Iterator[Picture]:
    """The image as it is."""
    yield Picture(piece.image(), seed)


def spec(settings: Settings, seed: int) -> str:
    """The set in the words of DATA."""
    return f"shapes:{settings['split']}?n={settings['n']}&size={settings['size']}&seed={seed}"


SHAPES_MAKER = Maker(
    "shapes",
    "the embedded set of drawn shapes × textures as files (no SRC needed)",
    {"split": "aligned", "n": 4000, "size": 64},
    draw,
    lay,
    takes_both=False,
    default_source=spec,
)
