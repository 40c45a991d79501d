"""Image sets with objects: Pascal VOC, COCO, YOLO and tables, in folders and inside zips; one file per format."""

from __future__ import annotations

from collections.abc import Mapping

from cuewise.data.annotations import coco, table, voc, yolo
from cuewise.data.annotations.annotated import Annotated, Box, Record
from cuewise.data.annotations.places import FileSet
from cuewise.data.options import ANYWHERE
from cuewise.errors import UserError

__all__ = ["FORMATS", "Annotated", "Box", "Record", "open_annotated"]

# ending of the file that holds the annotations → its reader and the reader's options; "" is a folder
FORMATS = {
    ".json": (coco.open_coco, ("images", "masks")),
    ".yaml": (yolo.open_yolo, ("split",)),
    ".yml": (yolo.open_yolo, ("split",)),
    ".csv": (table.open_table, ("images",)),
    "": (voc.open_voc, ("set",)),
}


def open_annotated(place: FileSet, name: str, given: Mapping[str, str], spec: str) -> Annotated:
    """The set that the file `name` of `place` annotates ("": the folder itself, in VOC's layout)."""
    ending = next((e for e in FORMATS if e and name.lower().endswith(e)), "")
    reader, known = FORMATS[ending]
    for key in given:
        if key not in known:
            listed = ", ".join([*ANYWHERE, *known])
            raise UserError(
                f"{spec}: {key!r} is not an option of this data set; write ?{known[0]}=… (it takes: {listed})"
            )
    return reader(place, name, given, spec)
