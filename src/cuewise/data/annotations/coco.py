"""COCO's instances_*.json: images, categories, and one box (and perhaps polygons) per object; panoptic files: panoptic.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cuewise.data.annotations.annotated import (
    MOST_PIXELS,
    Annotated,
    Box,
    LostBox,
    Record,
    stated_size,
    usable,
)
from cuewise.data.annotations.panoptic import open_panoptic
from cuewise.data.annotations.places import FileSet, need_images, need_text
from cuewise.data.index import Skipped
from cuewise.errors import UserError

NAN = float("nan")


def open_coco(place: FileSet, name: str, given: Mapping[str, str], spec: str) -> Annotated:
    """The images of a COCO file; `?images=FOLDER` says where they lie (without: beside the file)."""
    content = read(need_text(place, name, spec), spec)
    images = need_images(place, given.get("images"), spec)
    categories = [c for c in content["categories"] if isinstance(c.get("name"), str) and is_id(c.get("id"))]
    categories.sort(key=lambda c: (isinstance(c["id"], str), c["id"]))  # numbers first, then texts
    names = {c["id"]: c["name"] for c in categories}
    records: dict[Any, Record] = {}
    skipped: list[Skipped | LostBox] = []
    for entry in content["images"]:
        file, width, height = entry.get("file_name"), entry.get("width"), entry.get("height")
        if not isinstance(file, str) or not is_id(entry.get("id")):
            skipped.append(Skipped(f"image {shown(entry.get('id'))}", "entry without a file_name or an id"))
            continue
        records[entry["id"]] = Record(file, [], stated_size(width, height))
    if any("segments_info" in entry for entry in content["annotations"]):  # of whole images
        return open_panoptic(place, name, content, records, names, images, given, spec, skipped)
    if "masks" in given:
        raise UserError(
            f"{spec}: 'masks' is for panoptic files, whose annotations have segments_info; leave it out"
        )
    for entry in content["annotations"]:
        image, category = entry.get("image_id"), entry.get("category_id")
        record = records.get(image) if is_id(image) else None
        if record is None:
            why = f"of an unknown image {shown(image)}"
            skipped.append(LostBox(f"annotation {shown(entry.get('id'))}", why))
            continue
        flags = ("crowd",) if entry.get("iscrowd") else ()
        label = names.get(category) if is_id(category) else None
        label = label or f"category {shown(category)}"
        record.boxes.append(Box(label, corners(entry.get("bbox")), flags, outline(entry.get("segmentation"))))
    return usable(
        Annotated("coco", spec, images, records.values(), classes=list(names.values()), skipped=skipped)
    )


def is_id(value: Any) -> bool:
    """Whether a value can identify an image or a category."""
    return isinstance(value, int | str)


def shown(value: Any) -> str:
    """A value in a message, however long it is."""
    return str(value)[:60]


def read(text: str, spec: str) -> dict[str, list[dict[str, Any]]]:
    """The three lists of the file."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{spec}: broken JSON ({error}); make or fetch the file again") from None
    lists = ("images", "annotations", "categories")
    if not isinstance(content, dict) or not all(isinstance(content.get(k), list) for k in lists):
        raise UserError(f"{spec} is no COCO file: it needs the lists {', '.join(lists)} (instances_*.json)")
    return {k: [entry for entry in content[k] if isinstance(entry, dict)] for k in lists}


def corners(bbox: Any) -> tuple[float, float, float, float]:
    """x, y, width, height → corners; not a number where it is no box."""
    try:
        x, y, width, height = map(float, bbox)
    except (TypeError, ValueError, OverflowError):
        return NAN, NAN, NAN, NAN
    return x, y, x + width, y + height


def outline(segmentation: Any) -> tuple[tuple[float, ...], ...]:
    """The polygons of an object; run lengths (of crowds) and what is no polygon are left out."""
    if not isinstance(segmentation, list):
        return ()
    polygons = [p for p in segmentation if isinstance(p, list) and len(p) >= 6 and len(p) % 2 == 0]
    return tuple(tuple(map(float, p)) for p in polygons if all(map(is_pixel, p)))


def is_pixel(value: Any) -> bool:
    """Whether a value is a coordinate that an image can have."""
    return isinstance(value, int | float) and abs(value) < MOST_PIXELS
