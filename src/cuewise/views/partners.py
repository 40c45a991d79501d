"""Which copy (a texture, a filtered image) belongs to which image: by the manifest that `cuewise make` wrote, else by name."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, open_data
from cuewise.data.noisy_labels import stem
from cuewise.errors import UserError
from cuewise.views.textures import MadeCopies, MadeTextures


def made_textures(data: Dataset, places: list[str], count: int) -> MadeTextures:
    """One set of textures for each of `count` negatives, matched to the images of `data`."""
    if len(places) != count:
        raise UserError(
            f"--texture-data names {len(places)} set{'s' * (len(places) != 1)} and --num-negatives is {count}: a set "
            "holds one texture per image, so give one for each negative, made with another `cuewise make texture --seed`"
        )
    sets = tuple(open_data([place]) for place in places)
    return MadeTextures(sets, tuple(match(data, there, place) for there, place in zip(sets, places)))


def made_copies(data: Dataset, places: list[str], kind: str) -> MadeCopies:
    """Sets that `cuewise make KIND` wrote of the images of `data`."""
    option = "suppress.copies"
    for place in places:
        kinds = {row["kind"] for row in islice(_rows(Path(place)), 1) if row.get("kind")}
        if kinds and kinds != {kind}:
            raise UserError(
                f"{option} {place}: made by `cuewise make {kinds.pop()}`, and --suppress is {kind}; give one of the two"
            )
    sets = tuple(open_data([place]) for place in places)
    partners = tuple(match(data, there, place, option, kind) for there, place in zip(sets, places))
    return MadeCopies(sets, partners, option, kind)


def match(
    data: Dataset, textures: Dataset, place: str, option: str = "--texture-data", kind: str = "texture"
) -> NDArray[np.int64]:
    """For each image of `data` the number of its copy; −1 where the maker found the image broken.

    An image without a copy, or with two, is an error that names it.
    """
    names = {textures.name(i): i for i in range(len(textures))}
    listed = list(manifest(Path(place)))
    made = {source: names[name] if name else -1 for source, name in listed if not name or name in names}
    stems = {} if listed else {stem(name): i for name, i in names.items()}
    partners: dict[str, int | None] = {}
    for i in range(len(data)):
        name = data.name(i)
        if name in partners:
            raise UserError(
                f"two images are called {name}, and {place} cannot distinguish them; train on one set at a time, or "
                "put both below one folder"
            )
        partners[name] = made.get(name) if listed else stems.get(stem(name))
    missing = [name for name, found in partners.items() if found is None]
    if missing:
        raise UserError(
            f"{option} {place} has no {kind} of {missing[0]}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + f" ({len(data)} images): finish it with `cuewise make {kind} DATA {place}`"
        )
    return np.array(list(partners.values()), np.int64)


def manifest(folder: Path) -> Iterator[tuple[str, str | None]]:
    """(source, name) of each written file, name None where the source was broken; nothing without a manifest."""
    for row in _rows(folder):
        yield str(row["source"]), row.get("name")


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    lines, table = folder / "manifest.jsonl", folder / "manifest.parquet"
    try:
        if lines.is_file():
            with lines.open("rb") as file:
                yield from (json.loads(line) for line in file)
        elif table.is_file():
            parquet = importlib.import_module("pyarrow.parquet")
            yield from parquet.read_table(table, columns=["source", "name", "kind"]).to_pylist()
    except (ValueError, KeyError) as error:
        raise UserError(f"{folder}: its manifest cannot be read ({error}); make the set again") from None
    except ImportError:
        raise UserError(f"{table} needs pyarrow: pip install 'cuewise[parquet]'") from None
