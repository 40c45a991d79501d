"""The manifest: one row per written file, in the order of the source, as JSON lines or Parquet."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from cuewise.errors import UserError
from cuewise.makers.journal import Journal, to_line
from cuewise.makers.render import Made

MANIFESTS = {"jsonl": "manifest.jsonl", "parquet": "manifest.parquet"}
Row = dict[str, Any]
_NUMBERS = ("index", "seed", "width", "height", "bytes")
_TEXTS = ("name", "source", "texture_source", "class", "shard", "kind", "broken", "parameters")


def check_form(form: str) -> None:
    """An error where the manifest cannot be written in that form."""
    if form not in MANIFESTS:
        raise UserError(f"manifest {form!r}: there are {' and '.join(MANIFESTS)}")
    if form == "parquet":
        _arrow()


def _arrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(
            "a Parquet manifest needs pyarrow: pip install 'cuewise[parquet]', or --manifest jsonl"
        ) from None
    return importlib.import_module("pyarrow")


def write_rows(file: BinaryIO, rows: Iterable[Row], form: str) -> None:
    """All rows into an open file."""
    if form == "jsonl":
        file.writelines(map(to_line, rows))
        return
    arrow = _arrow()
    types = {name: arrow.int64() for name in _NUMBERS} | {name: arrow.string() for name in _TEXTS}
    schema = arrow.schema([(name, types[name]) for name in types])
    source = iter(rows)
    with arrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := [_flat(row) for row in islice(source, 50_000)]:
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))


def _flat(row: Row) -> Row:
    """Parameters (and any fact without a column of its own) as one JSON text; names as valid UTF-8."""
    known = {k: row[k] for k in (*_NUMBERS, *_TEXTS) if k in row and k != "parameters"}
    rest = {k: v for k, v in row.items() if k not in known and k != "parameters"}
    known["parameters"] = json.dumps({**rest, **row.get("parameters", {})})
    return {k: v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v
            for k, v in known.items()}  # fmt: skip


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a manifest, none where there is no such file."""
    if not path.exists():
        return
    if path.suffix == ".jsonl":
        with open(path, "rb") as file:
            yield from map(json.loads, file)
        return
    _arrow()
    with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                parameters = json.loads(row.pop("parameters"))
                yield {k: v for k, v in row.items() if v is not None or k in ("name", "seed")} | {
                    "parameters": parameters
                }


def to_journal(path: Path, journal: Journal) -> None:
    """A finished manifest as a journal, so that a set can be extended or repaired."""
    listed = (row for row in read_rows(path) if row.get("index") is not None)
    for index, rows in groupby(listed, key=lambda row: row["index"]):
        journal.add(Made(int(index), (), tuple(rows)))
    journal.close()
