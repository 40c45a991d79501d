"""Parquet files and Hugging Face sets: a column of encoded images, and perhaps one of labels."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuewise.data import cache
from cuewise.data.headers import HEAD, complaint
from cuewise.data.index import Builder, Index, make
from cuewise.data.placed import PlacedFile
from cuewise.data.source import Listed
from cuewise.errors import UserError
from cuewise.files import writing

IMAGES = ("image", "img", "jpg", "jpeg", "png", "webp", "bytes", "image_bytes", "data")
LABELS = ("label", "labels", "fine_label", "cls", "class", "target", "category")
ROWS = 256  # read at once while unpacking


class Columns(NamedTuple):
    """Which columns hold what."""

    image: str
    nested: bool  # a struct with a field `bytes`, as Hugging Face writes it
    label: str | None
    classes: tuple[str, ...]


class Parquet(Listed):
    """Images in a parquet file.

    Parquet has no way to one row, so the images are unpacked once into a file in the cache folder, where each
    is one read. Names are the row numbers.
    """

    kind = "parquet"

    def __init__(self, path: str) -> None:
        index, blob = unpack(path)
        self.file = PlacedFile(blob)
        super().__init__(path, index)

    def read(self, i: int) -> bytes:
        where = self.index.where
        return self.file.pread(int(where["size"][i]), int(where["at"][i]))


def unpack(path: str) -> tuple[Index, str]:
    """The index and the file of bare images, from the cache where the parquet file is the same."""
    key = f"parquet\0{os.path.abspath(path)}"
    stamp = cache.file_stamp(path)
    blob = str(cache.cache_path(key, "images"))
    found = cache.load(key)
    if found is not None and found[1]["file"] == stamp and cache.settled(found[1]["taken"], stamp[1]):
        index, size = found[0], found[1]["size"]
        if os.path.isfile(blob) and os.path.getsize(blob) == size:
            return index, blob
    taken = time.time_ns()
    try:
        os.makedirs(os.path.dirname(blob), exist_ok=True)
        with writing(Path(blob), shared=True, sync=False) as out:
            index = _copy(path, out)
            size = out.tell()
    except OSError as error:
        raise UserError(
            f"{path} must be unpacked into {os.path.dirname(blob)}, which failed ({error.strerror}); "
            "free some space there, or name another folder in CUEWISE_CACHE"
        ) from None
    cache.save(key, index, {"taken": taken, "file": stamp, "size": size})
    return index, blob


def _copy(path: str, out: Any) -> Index:
    try:
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(f"{path}: parquet needs pyarrow; run: pip install 'cuewise[parquet]'") from None
    try:
        file = pq.ParquetFile(path)
        columns = find_columns(file.schema_arrow, path)
        chosen = [columns.image] + ([columns.label] if columns.label else [])
        builder, labels = Builder("row", "at", "size"), list[Any]()
        row = 0
        for group in file.iter_batches(batch_size=ROWS, columns=chosen):
            for record in group.to_pylist():
                _add(builder, record, columns, row, out, labels)
                row += 1
    except (
        OSError,
        ValueError,
        KeyError,
        NotImplementedError,
        MemoryError,
    ) as error:  # pyarrow's are among these
        raise UserError(f"{path} cannot be read as parquet ({error}); make or fetch it again") from None
    found, classes = encode(labels, columns.classes)
    bare = builder.finish()
    return make(bare, found, classes, list(bare.skipped))


def _add(
    builder: Builder, record: dict[str, Any], columns: Columns, row: int, out: Any, labels: list[Any]
) -> None:
    value = record[columns.image]
    data = ((value or {}).get("bytes") if columns.nested else value) or b""
    name = f"{row:08d}".encode()
    why = complaint(len(data), data[:HEAD])
    if why is not None:
        builder.skip(name, "no bytes in this row" if not data else why)
        return
    builder.add(name, row, out.tell(), len(data))
    out.write(data)
    labels.append(record[columns.label] if columns.label else None)


def encode(values: list[Any], classes: tuple[str, ...]) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """A label column → numbers and class names; None where a value is missing (−1 counts as missing)."""
    if not values or any(v is None or isinstance(v, float | list | dict) for v in values):
        return None, ()
    if all(isinstance(v, int) for v in values):
        numbers = np.array(values, dtype=np.int64)
        if numbers.min() < 0 or (classes and numbers.max() >= len(classes)):
            return None, ()
        names = classes or tuple(str(i) for i in range(int(numbers.max()) + 1))
        return numbers.astype(np.int32), names
    names = tuple(sorted({str(v) for v in values}))
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[str(v)] for v in values], dtype=np.int32), names


def find_columns(schema: Any, path: str) -> Columns:
    """The image and label columns: as Hugging Face declares them, else by their usual names and types."""
    features = _features(schema)
    image = next((k for k, v in features.items() if _is(v, "Image")), None)
    bearing = [field.name for field in schema if _bears_bytes(field.type)]
    if image is None:
        image = next((name for name in IMAGES if name in bearing), bearing[0] if len(bearing) == 1 else None)
    if image is None:
        raise UserError(
            f"{path} has no column of images (binary, or a struct with `bytes`) among: {', '.join(schema.names)}; "
            "name it `image`"
        )
    label = next((k for k, v in features.items() if _is(v, "ClassLabel")), None)
    label = label or next((name for name in LABELS if name in schema.names), None)
    classes = tuple((features.get(label or "") or {}).get("names") or ())
    return Columns(image, "struct" in str(schema.field(image).type), label, classes)


def _is(feature: Any, kind: str) -> bool:
    return isinstance(feature, dict) and feature.get("_type") == kind


def _bears_bytes(kind: Any) -> bool:
    text = str(kind)
    return text in ("binary", "large_binary") or (text.startswith("struct<") and "bytes: " in text)


def _features(schema: Any) -> dict[str, Any]:
    try:
        found = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return found if isinstance(found, dict) else {}
    except (KeyError, ValueError, TypeError):
        return {}
