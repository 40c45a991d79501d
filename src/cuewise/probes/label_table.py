"""Several labels per image: from a CSV or JSON table, or from the annotated objects of DATA."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset
from cuewise.errors import UserError

SEPARATOR = ";"
FORM = (
    "a CSV with the columns image,labels (labels separated by ;) and perhaps difficult, or a JSON object "
    '{"image name": ["label", …]}'
)


class LabelTable(NamedTuple):
    """Names of the labels, and for each image those it has and those that are too difficult to count."""

    classes: tuple[str, ...]
    present: dict[str, tuple[str, ...]]
    difficult: dict[str, tuple[str, ...]]


def read_table(file: Path) -> LabelTable:
    """The table in a .csv or .json file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the labels {file} ({error}); give {FORM}") from None
    rows = _from_json(text, file) if file.suffix == ".json" else _from_csv(text, file)
    present: dict[str, tuple[str, ...]] = {}
    difficult: dict[str, tuple[str, ...]] = {}
    for image, labels, hard in rows:
        if image in present:
            raise UserError(f"{file} has two rows for {image!r}: put all its labels into one")
        present[image], difficult[image] = labels, hard
    if not present:
        raise UserError(f"{file} names no image; give {FORM}")
    classes = sorted({label for labels in (*present.values(), *difficult.values()) for label in labels})
    return LabelTable(tuple(classes), present, difficult)


def _from_csv(text: str, file: Path) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    reader = csv.DictReader(text.splitlines())
    if not {"image", "labels"} <= set(reader.fieldnames or []):
        raise UserError(f"{file} has the columns {reader.fieldnames}; give {FORM}")
    named = [row for row in reader if row["image"]]
    return [(row["image"], _split(row["labels"]), _split(row.get("difficult"))) for row in named]


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(SEPARATOR) if part.strip())


def _from_json(text: str, file: Path) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UserError(f"{file} is not JSON ({error}); give {FORM}") from None
    if not isinstance(content, dict) or not all(isinstance(v, list) for v in content.values()):
        raise UserError(f"{file}: give {FORM}")
    return [(str(image), tuple(map(str, labels)), ()) for image, labels in content.items()]


class Annotations(NamedTuple):
    """Labels that come with DATA: the classes of its annotated objects."""

    classes: tuple[str, ...]


def targets(
    data: Dataset,
    index: NDArray[np.int64],
    table: LabelTable | Annotations,
    classes: tuple[str, ...],
    where: str,
) -> NDArray[np.int8]:
    """N×C for the images at `index`: 1 present, 0 absent, −1 difficult. Every image must be in the table."""
    if isinstance(table, Annotations):
        return annotated_targets(data, index, table, classes)
    number = {name: c for c, name in enumerate(classes)}
    out = np.zeros((len(index), len(classes)), np.int8)
    missing = []
    for row, i in enumerate(index.tolist()):
        name = data.name(i)
        if name not in table.present:
            missing.append(name)
            continue
        for labels, value in ((table.difficult[name], -1), (table.present[name], 1)):
            out[row, [number[label] for label in labels if label in number]] = value
    if missing:
        raise UserError(
            f"{len(missing)} of {len(index)} images of {where} are not in its table of labels (the first: "
            f"{missing[0]!r}): add a row for each, an empty one where it has no label"
        )
    return out


def annotated_targets(
    data: Dataset, index: NDArray[np.int64], table: Annotations, classes: tuple[str, ...]
) -> NDArray[np.int8]:
    """The same from annotated objects: a class that is seen on an image only as difficult is not counted there."""
    at = np.array([classes.index(name) if name in classes else -1 for name in table.classes], np.int64)
    out = np.zeros(
        (len(index), len(classes) + 1), np.int8
    )  # classes that are not asked for fall into the last
    for row, i in enumerate(index.tolist()):
        facts = data.facts(i)
        if facts.boxes is not None and "difficult" in facts.boxes.flags:
            out[row, at[facts.boxes.classes[facts.boxes.flags["difficult"]]]] = -1
        if facts.labels is not None:
            out[row, at[facts.labels]] = 1
    return out[:, :-1]


def annotated_labels(data: Dataset) -> Annotations | None:
    """The labels of a set with objects (shapes:scenes, VOC, COCO, …); None for other sets."""
    return Annotations(data.object_classes) if data.object_classes else None
