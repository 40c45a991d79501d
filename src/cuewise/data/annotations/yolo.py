"""YOLO: a data.yaml with names and splits, and one text file per image (class, centre and size as shares of the image)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import yaml

from cuewise.data.annotations.annotated import Annotated, Box, Record, usable
from cuewise.data.annotations.places import FileSet, need_text
from cuewise.data.index import Skipped
from cuewise.errors import UserError

MOST_CLASSES, MOST_TEXT, DEEPEST = 1 << 20, 1 << 22, 20
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the former is ten times faster
SPLITS = ("train", "val", "test")


def open_yolo(place: FileSet, name: str, given: Mapping[str, str], spec: str) -> Annotated:
    """A split of a data.yaml (`?split=val`; without: train)."""
    about = read(need_text(place, name, spec), spec)
    split = given.get("split", "train")
    folder = about.get(split)
    if not isinstance(folder, str):
        there = ", ".join(s for s in SPLITS if isinstance(about.get(s), str)) or "none"
        why = "must be one folder" if folder is not None else "is not there"
        raise UserError(f"{spec}: split {split!r} {why}; splits in the file: {there}")
    folder = posixpath.normpath(posixpath.join(str(about.get("path") or ""), folder))
    images = place.images(folder)
    if images is None:
        raise UserError(f"{spec}: the images of {split!r} should lie in {folder}, which is not there")
    names = class_names(about, spec)
    records, skipped = [], []
    for i in range(len(images)):
        image = images.name(i)
        data = label_text(place, folder, image)
        if data is None:
            skipped.append(
                Skipped(image, "without annotation: no text file (an empty one says that nothing is there)")
            )
            continue
        lines = [line.split() for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
        records.append(Record(image, [box(words, names) for words in lines], relative=True))
    return usable(Annotated("yolo", spec, images, records, classes=names, skipped=skipped))


def read(text: str, spec: str) -> dict[str, Any]:
    try:
        check(text, spec)
        content = yaml.load(text, Loader=LOADER)  # a safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{spec}: broken YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict) or "names" not in content:
        raise UserError(f"{spec} is no YOLO data file: it needs names and a folder of images per split")
    return content


def check(text: str, spec: str) -> None:
    """An error for YAML that is far larger or deeper than such a file, or that grows when it is read."""
    depth = 0
    for event in yaml.parse(text[:MOST_TEXT], Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise UserError(f"{spec}: YAML with aliases (*name) can grow without end; write the values out")
        if depth > DEEPEST or len(text) > MOST_TEXT:
            raise UserError(f"{spec} is no YOLO data file: it is too deep or too long")


def class_names(about: dict[str, Any], spec: str) -> list[str]:
    """`names` as a list or as a mapping of numbers."""
    names = about["names"]
    if isinstance(names, list):
        return [str(n) for n in names]
    if isinstance(names, dict) and all(isinstance(k, int) and 0 <= k < MOST_CLASSES for k in names):
        return [str(names.get(k, k)) for k in range(max(names, default=-1) + 1)]
    raise UserError(f"{spec}: names must be a list, or numbers from 0 with a name each")


def label_text(place: FileSet, folder: str, image: str) -> bytes | None:
    """The text file of an image: in labels/… for images/…, or beside the image itself."""
    parts = folder.split("/")
    if "images" in parts:
        parts[len(parts) - 1 - parts[::-1].index("images")] = "labels"
    name = image.rpartition(".")[0] + ".txt"
    data = place.read(posixpath.join("/".join(parts), name))
    return place.read(posixpath.join(folder, name)) if data is None else data


def box(words: list[str], names: list[str]) -> Box:
    """One line: class, then centre and size, or a polygon, as shares of the image."""
    try:
        number, *shares = (float(word) for word in words)
        label = (
            names[int(number)] if 0 <= number < len(names) and number == int(number) else f"class {words[0]}"
        )
    except (ValueError, OverflowError):
        return Box(f"class {words[0]}", (float("nan"),) * 4)
    if len(shares) >= 6 and len(shares) % 2 == 0:  # a polygon
        xs, ys = shares[::2], shares[1::2]
        return Box(label, (min(xs), min(ys), max(xs), max(ys)))
    if len(shares) not in (4, 5):  # a fifth is a confidence
        return Box(label, (float("nan"),) * 4)
    x, y, width, height = shares[:4]
    return Box(label, (x - width / 2, y - height / 2, x + width / 2, y + height / 2))
