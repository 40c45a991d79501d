"""Where boxes of objects come from: annotations, a table on disk, or proposals made on the fly."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuewise.compiled import cache_root
from cuewise.cues.objects import propose
from cuewise.data import Dataset, Sample
from cuewise.data.cache import file_stamp
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.views.object_crops import BoxSource, Corners, GivenBoxes

COLUMNS = ("image", "xmin", "ymin", "xmax", "ymax")
VERSION = 1  # raise when proposals of the default settings change
GIVEN_ROWS = "boxes"  # the annotated objects of an image among the facts that travel with it


@dataclass(frozen=True)
class TableBoxes:
    """Boxes from a table, found by the names of the images."""

    found: dict[str, Corners]
    file: Path | None = None

    def boxes(self, sample: Sample) -> Corners:
        return self.found.get(sample.name, np.zeros((0, 4), np.float32))

    def known(self, data: Dataset, i: int) -> Corners | None:
        return self.found.get(data.name(i), np.zeros((0, 4), np.float32))


@dataclass(frozen=True)
class ProposedBoxes:
    """Class-agnostic proposals of the image itself."""

    count: int = 50

    def boxes(self, sample: Sample) -> Corners:
        return propose(sample.image, k=self.count).corners.astype(np.float32)

    def known(self, data: Dataset, i: int) -> Corners | None:
        return None


def box_source(boxes: str, data: Dataset, setting: str = "crops.boxes") -> BoxSource:
    """The source that a setting (crops.boxes, hcl.boxes) names."""
    if boxes == "given":
        if not data.object_classes:
            raise UserError(
                f"{setting}=given: DATA has no annotated objects (docs/data.md says how to give them)"
            )
        return GivenBoxes()
    if boxes == "proposals":
        table = recalled(data)
        return ProposedBoxes() if table is None else TableBoxes(read_boxes(table, data, setting), table)
    file = Path(boxes).expanduser()
    return TableBoxes(read_boxes(file, data, setting), file)


def remember(data: Dataset, table: Path) -> None:
    """Note where the table of a set's proposals is; a full or read-only disk costs only the time to propose again."""
    with suppress(OSError):
        note = note_of(data)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_json(
            note, {"table": os.path.abspath(table), "stamp": file_stamp(os.fspath(table))}, indent=None
        )


def recalled(data: Dataset) -> Path | None:
    """The table that `cuewise make boxes` made of this set with its default settings, unless it was changed since."""
    try:
        known = json.loads(note_of(data).read_text())
        table = Path(known["table"])
        return table if file_stamp(os.fspath(table)) == known["stamp"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def note_of(data: Dataset) -> Path:
    """By the sources' lists of images and places: a copy of a set under the same names is another set."""
    parts = [source.fingerprint() for source in data.sources]
    places = [os.path.realpath(str(s["data"])) for part in parts for s in part["sources"]]
    key = json.dumps([VERSION, [part["hash"] for part in parts], places])
    return cache_root() / f"boxes-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def read_boxes(file: Path, data: Dataset, setting: str = "crops.boxes") -> dict[str, Corners]:
    """image → boxes of a table with the columns image,xmin,ymin,xmax,ymax (others are not read)."""
    if file.is_dir():
        file = file / "boxes.csv"
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if not set(COLUMNS) <= set(reader.fieldnames or []):
                raise UserError(f"{setting}={file}: it needs the columns {','.join(COLUMNS)}")
            rows: dict[str, list[list[float]]] = {}
            for row in reader:
                try:
                    corners = [float(row[c]) for c in COLUMNS[1:]]
                except (TypeError, ValueError):
                    continue  # a row without a box
                if corners[2] > corners[0] and corners[3] > corners[1] and np.isfinite(corners).all():
                    rows.setdefault(row["image"], []).append(corners)
    except OSError as error:
        raise UserError(
            f"{setting}={os.fspath(file)} cannot be read ({error.strerror}); give proposals, given, or a table of "
            "`cuewise make boxes`"
        ) from None
    names = {data.name(i) for i in range(len(data))}
    found = {name: np.array(boxes, np.float32) for name, boxes in rows.items() if name in names}
    if not found:
        raise UserError(f"{setting}={file} contains none of these images; create it from the same DATA")
    return found
