"""A CSV with one row per object: image,label,xmin,ymin,xmax,ymax, and perhaps context (out, or anything else for in)."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from cuewise.data.annotations.annotated import Annotated, Box, LostBox, Record, usable
from cuewise.data.annotations.places import FileSet, need_images, need_text
from cuewise.errors import UserError

COLUMNS = ("image", "label", "xmin", "ymin", "xmax", "ymax")
OUT = "out"  # value of the column context


def open_table(place: FileSet, name: str, given: Mapping[str, str], spec: str) -> Annotated:
    """The images that a table names; pixels count from 0, xmax and ymax are exclusive. A row without corners: no object."""
    columns, rows = read(need_text(place, name, spec), spec)
    if not set(COLUMNS) <= set(columns):
        raise UserError(f"{spec} has the columns {', '.join(columns)}; it needs {','.join(COLUMNS)}")
    images = need_images(place, given.get("images"), spec)
    records: dict[str, Record] = {}
    skipped: list[LostBox] = []
    for number, row in enumerate(rows, 2):
        image = (row["image"] or "").strip()
        if not image:
            skipped.append(LostBox(f"line {number}", "row without an image"))
            continue
        record = records.setdefault(image, Record(image, []))
        cells = [(row[c] or "").strip() for c in COLUMNS[2:]]
        if any(cells):
            out = (row.get("context") or "").strip() == OUT
            label = (row["label"] or "").strip() or None
            record.boxes.append(Box(label, _corners(cells), ("out_of_context",) if out else ()))
    source = Annotated("table", spec, images, records.values(), skipped=skipped)
    if "context" in columns and "out_of_context" not in source.objects.flags:
        source.objects.flags["out_of_context"] = source.objects.classes < 0  # the table says that none is
    return usable(source)


def read(text: str, spec: str) -> tuple[list[str], list[dict[str, str | None]]]:
    """The names of the columns, and the rows."""
    reader = csv.DictReader(text.splitlines())
    try:
        return list(reader.fieldnames or []), list(reader)
    except csv.Error as error:
        raise UserError(f"{spec}, line {reader.line_num}: broken CSV ({error})") from None


def _corners(cells: list[str]) -> tuple[float, float, float, float]:
    try:
        left, top, right, bottom = map(float, cells)
    except ValueError:
        return (float("nan"),) * 4
    return left, top, right, bottom
