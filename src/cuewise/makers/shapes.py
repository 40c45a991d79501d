"""The embedded shapes as files, with what is known of each image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from cuewise.data import Dataset
from cuewise.data.shapes import SHAPES, TEXTURES
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker, Picture
from cuewise.makers.mirror import mirror

WORDS = {"shape": SHAPES, "texture": TEXTURES}


@dataclass(frozen=True)
class EmbeddedShapes(Maker):
    """The set's own names, and its columns as facts."""

    name = "shapes"
    summary = "the embedded set of drawn shapes × textures as files (no SRC needed)"
    takes_both = False
    has_source = True
    split: Annotated[str, "which split, as in DATA shapes:SPLIT"] = "aligned"
    n: Annotated[int, "how many images"] = 4000
    size: Annotated[int, "side in pixels"] = 64

    def source(self, seed: int) -> str:
        return f"shapes:{self.split}?n={self.n}&size={self.size}&seed={seed}"

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """A file for each image, with what is known of it."""
        layout = mirror(dataset, end)
        columns = {key: _words(key, column) for key, column in dataset.columns.items()}
        return replace(layout, facts={**layout.facts, **columns})

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        """The image, unchanged."""
        yield Picture(piece.image(), seed)


def _words(key: str, column: Any) -> Any:
    if key in WORDS and column.ndim == 1 and np.issubdtype(column.dtype, np.integer):
        return [WORDS[key][k] if k >= 0 else None for k in column.tolist()]
    return column
