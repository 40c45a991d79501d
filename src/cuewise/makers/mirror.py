"""Where results go when they mirror the tree of their source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.makers.layout import Layout
from cuewise.makers.names import Stems, ending


def mirror(dataset: Dataset, end: str, *, folders: Sequence[str] = ("",), both: str = "") -> Layout:
    """One item per image, under its own name in each of `folders`.

    both: a word that distinguishes results from originals, which are then written, too: rex.jpg, rex.anisotropic.png.
    """
    behind = f".{both}.{end}" if both else f".{end}"
    originals = original_endings(dataset, f".{end}") if both else None

    def files(stem: str, i: int) -> Iterable[str]:
        return (stem + behind, stem + originals[i]) if originals else (stem + behind,)

    stems = Stems(dataset.name, len(dataset), files)
    sources = np.arange(len(dataset), dtype=np.int64)[:, None]
    variants = tuple((folder, behind) for folder in folders)
    labels = None if dataset.labels is None else dataset.labels.tolist()
    facts = {} if labels is None else {"class": [dataset.classes[k] for k in labels]}
    return Layout(dataset, sources, stems, variants, originals, facts)


def original_endings(dataset: Dataset, own: str) -> list[str]:
    """The ending of each original: its own where its bytes can be copied, else that of the results."""
    stored = {id(source): len(source) > 0 and source.read(0) is not None for source in dataset.sources}
    return [
        (ending(dataset.name(i)) if stored[id(dataset.locate(i)[0])] else own) or own
        for i in range(len(dataset))
    ]


def in_shards(layout: Layout, images: int) -> Layout:
    """The layout with about `images` files per tar; what is made of one image stays together."""
    if images < 1:
        raise UserError(f"shards {images}: give the number of images per tar, such as 10000")
    return replace(layout, shard_size=max(1, images // layout.outputs))
