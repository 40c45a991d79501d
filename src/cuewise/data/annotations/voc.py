"""Pascal VOC's layout: JPEGImages/, Annotations/*.xml, ImageSets/Main/SET.txt, SegmentationClass/*.png."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from cuewise.data.annotations.annotated import Annotated, Box, Record, stated_size, usable
from cuewise.data.annotations.places import Archive, FileSet, read_all
from cuewise.data.index import Skipped
from cuewise.errors import UserError

FLAGS = ("difficult", "truncated", "occluded")


def is_voc(place: FileSet) -> bool:
    """Whether a folder is laid out as Pascal VOC."""
    return place.has_folder("JPEGImages") and place.has_folder("Annotations")


def voc_root(place: Archive) -> Archive | None:
    """The one folder of a zip that is laid out as Pascal VOC, at its top or further in; None without."""
    start = place.inside + "/" if place.inside else ""
    inner = [m[len(start) :] for m in place.members if m.startswith(start)]
    roots = {m[: m.find("JPEGImages/")] for m in inner if m.startswith("JPEGImages/") or "/JPEGImages/" in m}
    found = [Archive(place.path, (start + root).strip("/")) for root in sorted(roots)]
    found = [candidate for candidate in found if is_voc(candidate)]
    return found[0] if len(found) == 1 else None


def open_voc(place: FileSet, name: str, given: Mapping[str, str], spec: str) -> Annotated:
    """The images of a set (`?set=val`), or all of them."""
    images = place.images(_below(place, "JPEGImages"))
    assert images is not None
    by_stem = {images.name(i).rpartition(".")[0]: images.name(i) for i in range(len(images))}
    by_stem |= {s.path.rpartition(".")[0]: s.path for s in images.index.skipped}
    texts = read_all(place, "Annotations")
    skipped: list[Skipped] = []
    records = []
    for stem in set_names(place, given["set"], spec) if "set" in given else sorted(by_stem):
        data = texts.get(f"{stem}.xml")
        if data is None:
            skipped.append(Skipped(by_stem.get(stem, stem), "without annotation: there is no XML file"))
            continue
        try:
            records.append(read_record(data, by_stem.get(stem, f"{stem}.jpg")))
        except ValueError as error:
            skipped.append(Skipped(f"Annotations/{stem}.xml", str(error)))
    has_masks = place.has_folder("SegmentationClass")
    masks = place.images(_below(place, "SegmentationClass")) if has_masks else None
    return usable(Annotated("voc", spec, images, records, skipped=skipped, masks=masks))


def _below(place: FileSet, folder: str) -> str:
    return place.full(folder) if isinstance(place, Archive) else posixpath.join(place.shown, folder)


def set_names(place: FileSet, wanted: str, spec: str) -> list[str]:
    """The image names of ImageSets/*/SET.txt; a third column or −1 (of the sets of one class) is not an image."""
    for folder in ("Main", "Segmentation", "Layout", ""):
        data = place.read(posixpath.join("ImageSets", folder, f"{wanted}.txt"))
        if data is not None:
            rows = [line.split() for line in data.decode("utf-8-sig", "replace").splitlines()]
            return [row[0] for row in rows if row and (len(row) < 2 or row[1] != "-1")]
    there = sorted(
        {n[:-4] for f in ("Main", "") for n in place.names(f"ImageSets/{f}") if n.endswith(".txt")}
    )
    raise UserError(f"{spec}: no set {wanted!r}; there are: {', '.join(there) or 'none, leave out ?set='}")


def read_record(data: bytes, image: str) -> Record:
    """One annotation file; corners are 1-based and inclusive there, half open here. ValueError where it is broken."""
    root = parse(data)
    size = root.find("size")
    stated = None if size is None else stated_size(_number(size, "width"), _number(size, "height"))
    boxes = []
    for entry in root.iter("object"):
        place = entry.find("bndbox")
        if place is None:
            corners = (0.0, 0.0, 0.0, 0.0)
        else:
            left, top, right, bottom = (_number(place, k) for k in ("xmin", "ymin", "xmax", "ymax"))
            corners = (left - 1, top - 1, right, bottom)
        flags = tuple(f for f in FLAGS if (entry.findtext(f) or "0").strip() not in ("0", "Unspecified", ""))
        boxes.append(Box((entry.findtext("name") or "").strip() or None, corners, flags))
    return Record(image, boxes, stated)


def _number(parent: Element, tag: str) -> float:
    text = (parent.findtext(tag) or "nan").strip()
    try:
        return float(text)
    except ValueError:
        return float("nan")


def parse(data: bytes) -> Element:
    """XML without document types, hence without entities that grow or read files; ValueError where it is broken."""
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("XML with a document type (<!DOCTYPE …>): refused, take that line out")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
        return builder.close()
    except expat.ExpatError as error:
        raise ValueError(f"broken XML ({error})") from None
