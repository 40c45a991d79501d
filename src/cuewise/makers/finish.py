"""The end of a run: manifest and preview, from the journals and the files on disk."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cuewise.data import BrokenImage, Image, decode
from cuewise.files import writing
from cuewise.makers.encode import Format
from cuewise.makers.engine import WorkOrder
from cuewise.makers.journal import Records
from cuewise.makers.maker import Maker
from cuewise.makers.manifest import MANIFESTS, write_rows
from cuewise.makers.preview import PAIRS, grid, spread


def finish(order: WorkOrder, chosen: Maker, records: Records, form: str, wanted: int) -> None:
    """Write table, manifest and preview; the first `wanted` items are made, others perhaps."""
    store = order.store
    if chosen.table:
        with writing(store.folder / chosen.table) as file:
            write_table(file, chosen, all_rows(order, records, wanted))
        if wanted == len(order.layout):
            chosen.finished(store.folder, order.layout.dataset)
    with writing(store.folder / MANIFESTS[form]) as file:
        write_rows(file, all_rows(order, records, wanted), form)
    pairs = list(preview_pairs(order, chosen, records))
    if pairs:
        with writing(preview_path(order)) as file:
            file.write(Format("png").encode(grid(pairs)))


def write_table(file: BinaryIO, chosen: Maker, rows: Iterable[dict[str, Any]]) -> None:
    """The maker's CSV, in the order of the source; names that are no UTF-8 are kept as bytes."""
    text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(chosen.columns)
    for row in rows:
        if row["name"] is not None:
            lines.writerows(chosen.table_lines(row))
    text.detach()


def all_rows(order: WorkOrder, records: Records, wanted: int) -> Iterator[dict[str, Any]]:
    """Rows of all items that are made or broken, then the files that could not even be listed as images."""
    for i in range(len(order.layout)):
        if i in records and (i < wanted or order.store.done(i, records)):
            yield from records.rows(i)
    for skipped in order.layout.dataset.fingerprint()["skipped"]:
        yield {"index": None, "name": None, "source": skipped["path"], "kind": order.spec.kind,
               "broken": skipped["why"]}  # fmt: skip


def preview_path(order: WorkOrder) -> Path:
    """In the folder itself, unless it would count as an image of the set there."""
    nested = not order.layout.stems.flat or all("/" in before for before, _ in order.layout.variants)
    folder = order.store.folder if nested and not order.layout.shard_size else order.store.hidden
    return folder / "preview.png"


def preview_pairs(order: WorkOrder, chosen: Maker, records: Records) -> Iterator[list[Image]]:
    """(original, result) of items spread over the set; of several variants a different one each time."""
    made = [i for i in spread(len(order.layout), 8 * PAIRS) if i in records and order.store.done(i, records)]
    made = [i for i in made if records.rows(i)[0]["name"] is not None]
    for number, k in enumerate(spread(len(made), PAIRS)):
        i = made[k]
        rows = records.rows(i)[1 if order.spec.both else 0 :]
        try:
            originals = [order.layout.dataset.image(int(s)) for s in order.layout.sources[i][:2]]
            row = rows[(number * 7) % len(rows)]
            picture = originals[0] if row["bytes"] is None else decode(written(order, row), row["name"])
        except (BrokenImage, OSError, KeyError):  # a source may be gone by now
            continue
        yield [*originals, chosen.shown(picture, row)]


def written(order: WorkOrder, row: dict[str, Any]) -> bytes:
    """The bytes of a file that was made, from the tree or its tar."""
    if not order.layout.shard_size:
        return (order.store.folder / row["name"]).read_bytes()
    path = order.store.folder / row["shard"]
    with tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as tar:
        file = tar.extractfile(row["name"])
        assert file is not None
        return file.read()
