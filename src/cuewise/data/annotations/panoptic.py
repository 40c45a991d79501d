"""COCO's panoptic_*.json: every pixel belongs to one segment, a thing or stuff; segments are colours of a PNG per image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.annotations.annotated import (
    MOST_MASKED,
    VOID,
    Annotated,
    Box,
    LostBox,
    Record,
    read_mask,
    stem,
    usable,
)
from cuewise.data.annotations.places import FileSet
from cuewise.data.index import Skipped
from cuewise.data.sample import Mask
from cuewise.data.source import Listed
from cuewise.errors import UserError

Entry = dict[str, Any]


class Panoptic(Annotated):
    """Boxes of things, and masks in which each pixel has the class of its segment (class + 1); VOID where it has none, and in
    crowds.

    colours  name of an image without ending → its PNG, and the class + 1 (or VOID) of each segment id
    """

    def __init__(
        self, *args: Any, pictures: Listed, colours: dict[str, tuple[str, dict[int, int]]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.pictures, self.colours = pictures, colours
        self._at = {pictures.name(i): i for i in range(len(pictures))}

    def mask(self, i: int) -> Mask | None:
        found = self.colours.get(stem(self.name(i)))
        at = self._at.get(found[0]) if found else None
        if found is None or at is None or len(self.object_classes) > MOST_MASKED:
            return None
        return classes_of(segment_ids(self.pictures.read(at), found[0]), found[1])


def open_panoptic(
    place: FileSet,
    name: str,
    content: Mapping[str, list[Entry]],
    records: dict[Any, Record],
    names: dict[Any, str],
    images: Listed,
    given: Mapping[str, str],
    spec: str,
    skipped: list[Skipped | LostBox],
) -> Annotated:
    """The set; `?masks=FOLDER` says where its PNGs lie (without: in a folder named as the file, beside it)."""
    from cuewise.data.annotations.coco import corners, is_id, shown

    folder = given.get("masks", name.rpartition("/")[2].removesuffix(".json"))
    pictures = place.images(folder)
    if pictures is None:
        raise UserError(f"{spec}: there is no folder {folder!r} with its PNGs; write &masks=FOLDER")
    stuff = {c.get("id") for c in content["categories"] if c.get("isthing") == 0 and is_id(c.get("id"))}
    order = sorted(names, key=lambda c: c in stuff)  # things first, each in the order of the file
    classes = [names[c] for c in order]
    value = {c: k + 1 for k, c in enumerate(order)}
    colours: dict[str, tuple[str, dict[int, int]]] = {}
    for entry in content["annotations"]:
        image, file, segments = entry.get("image_id"), entry.get("file_name"), entry.get("segments_info")
        record = records.get(image) if is_id(image) else None
        if record is None or not isinstance(file, str) or not isinstance(segments, list):
            why = (
                f"of an unknown image {shown(image)}"
                if record is None
                else "without its file or its segments"
            )
            skipped.append(Skipped(f"annotation {shown(file)}", why))
            continue
        known: dict[int, int] = {}
        for segment in (s for s in segments if isinstance(s, dict)):
            category, number = segment.get("category_id"), segment.get("id")
            crowd = bool(segment.get("iscrowd"))
            label = names.get(category) if is_id(category) else None
            if isinstance(number, int):
                known[number] = VOID if crowd or label is None else min(value[category], VOID)
            if label is not None and category not in stuff:
                record.boxes.append(Box(label, corners(segment.get("bbox")), ("crowd",) if crowd else ()))
        colours[stem(record.image)] = (file, known)
    return usable(
        Panoptic("coco panoptic", spec, images, records.values(), classes=classes, skipped=skipped, pictures=pictures,
                 colours=colours)
    )  # fmt: skip


def segment_ids(data: bytes, name: str) -> NDArray[np.int64]:
    """H×W: R + 256 G + 256² B of each pixel."""
    return read_mask(data, name, ("RGB",)).astype(np.int64) @ np.array([1, 256, 65536])


def classes_of(ids: NDArray[np.int64], known: Mapping[int, int]) -> Mask:
    """The value of each pixel's segment; VOID where the file does not know it."""
    found, places = np.unique(ids, return_inverse=True)
    values = np.array([known.get(int(k), VOID) for k in found], np.uint8)
    return values[places].reshape(ids.shape)
