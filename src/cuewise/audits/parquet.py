"""scores.parquet and decisions.parquet beside audit.json, for pandas, DuckDB and viewers of data sets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cuewise.files import writing

SCORES = ("name", "value", "low", "high", "n", "protocol")
DECISIONS = "decisions"  # the last part of the name of a table with one row per image


def write_tables(document: Mapping[str, Any], folder: Path) -> None:
    """Both tables of an audit, where pyarrow is installed; a line says once how to get them where it is not.

    scores: one row per score. decisions: one row per audit and image, with the columns that the audits have.
    """
    if not _can_write():
        return
    model = document["model"]["name"]
    rows = [{"model": model, **{k: score[k] for k in SCORES}} for score in document["scores"]]
    _write(rows, ("model", *SCORES), folder / "scores.parquet")
    found = decisions(document)
    if found:
        columns = dict.fromkeys(["model", "audit", "image", *(k for row in found for k in row)])
        _write([{"model": model, **row} for row in found], tuple(columns), folder / "decisions.parquet")


def decisions(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of all tables with one row per image; `audit` is the table's name up to its last part."""
    out = []
    for name, table in document["tables"].items():
        audit, _, last = name.rpartition("/")
        if last == DECISIONS:
            out += [{"audit": audit, **dict(zip(table["columns"], row))} for row in table["rows"]]
    return out


def _write(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], file: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({c: _column([row.get(c) for row in rows]) for c in columns})
    with writing(file) as handle:
        pyarrow.parquet.write_table(table, handle)


def _column(values: Sequence[Any]) -> Any:
    """One type per column: truth, whole numbers, numbers or text; None is null."""
    import pyarrow

    known = {type(v) for v in values if v is not None}
    if known <= {bool}:
        return pyarrow.array(values, pyarrow.bool_() if known else pyarrow.string())
    if known <= {int}:
        return pyarrow.array(values, pyarrow.int64())
    if known <= {int, float}:
        return pyarrow.array([None if v is None else float(v) for v in values], pyarrow.float64())
    texts = [None if v is None else str(v).encode("utf-8", "replace").decode() for v in values]
    return pyarrow.array(texts, pyarrow.string())


@cache
def _can_write() -> bool:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        print(
            "scores.parquet and decisions.parquet are not written, because pyarrow is missing: pip install 'cuewise[tables]'",
            file=sys.stderr,
            flush=True,
        )
        return False
    return True
