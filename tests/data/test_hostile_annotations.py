"""Annotations that lie, break off or grow: images are skipped and named, or the set is refused in one line."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from object_files import write_coco, write_table, write_voc, write_yolo
from PIL import Image

from cuewise.data import Dataset, open_data
from cuewise.errors import UserError


def looked_at(data: Dataset) -> Dataset:
    for i in range(len(data)):
        data.image(i)
        data.facts(i)
    return data


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("categories", 0, "id"), [1]),
        (("categories", 0, "id"), "ten"),
        (("categories", 0, "name"), {}),
        (("images", 0, "id"), {"a": 1}),
        (("images", 0, "width"), "wide"),
        (("images", 0, "width"), -5),
        (("images", 0, "height"), 1e308),
        (("annotations", 0, "image_id"), []),
        (("annotations", 0, "category_id"), {}),
        (("annotations", 0, "bbox"), [0, 0, 2**2000, 1]),
        (("annotations", 0, "segmentation"), [["a"] * 6]),
        (("annotations", 0, "segmentation"), [[1e300] * 6]),
    ],
)
def test_values_of_coco(tmp_path: Path, where: tuple[str, int, str], value: Any) -> None:
    file = write_coco(tmp_path)
    content = json.loads(file.read_text())
    content[where[0]][where[1]][where[2]] = value
    file.write_text(json.dumps(content))
    data = looked_at(open_data(f"{file}?images={tmp_path / 'images'}"))
    assert 3 <= len(data) <= 4


def test_coco_of_brackets(tmp_path: Path) -> None:
    file = write_coco(tmp_path)
    file.write_text("[" * 100_000)
    with pytest.raises(UserError, match="broken JSON"):
        open_data(f"{file}?images={tmp_path / 'images'}")


@pytest.mark.parametrize("size", ["inf", "1e308", "-3", "99999999999999999999"])
def test_sizes_of_voc(tmp_path: Path, size: str) -> None:
    """What is no size is read off the image."""
    file = write_voc(tmp_path) / "Annotations" / "a.xml"
    file.write_text(file.read_text().replace("<width>32</width>", f"<width>{size}</width>"))
    assert len(looked_at(open_data(tmp_path))) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("val: images/val\na: &a [x, x]\nnames: [*a, *a]\n", "aliases"),
        ("val: images/val\nnames: {999999999999: cat}\n", "numbers from 0"),
        ("val: images/val\nnames: " + "[" * 3000, "too deep"),
        ("val: images/val\nnames: [" + "cat, " * 1_000_000 + "dog]", "too long"),
        ("val: images/val\nnames: [\x00]\n", "broken YAML"),
    ],
)
def test_yaml_of_yolo(tmp_path: Path, text: str, said: str) -> None:
    file = write_yolo(tmp_path)
    file.write_text(text)
    with pytest.raises(UserError, match=said):
        open_data(f"{file}?split=val")


def test_numbers_of_yolo(tmp_path: Path) -> None:
    file = write_yolo(tmp_path)
    (tmp_path / "labels" / "val" / "a.txt").write_text(
        "inf 1 1 1 1\n1e400 0 0 0 0\nnan 0 0 1 1\n٣ 0.5 0.5 0.1 0.1\n"
    )
    data = looked_at(open_data(f"{file}?split=val"))
    assert len(data) == 4
    assert sum("a.jpg" in s["path"] for s in data.fingerprint()["skipped"]) >= 3


def test_a_cell_without_end(tmp_path: Path) -> None:
    file = write_table(tmp_path)
    file.write_text(file.read_text() + "\na.jpg," + "x" * 200_000)
    with pytest.raises(UserError, match=r"line \d+: broken CSV \(field larger"):
        open_data(f"{file}?images={tmp_path / 'images'}")


@pytest.mark.parametrize("kind", ["name", "version"])
def test_a_zip_that_pythons_reader_gives_up_on(tmp_path: Path, kind: str) -> None:
    """A name that is not what its flag says, or a later version of the format: the images are there all the same."""
    file = tmp_path / "photos.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(3):
            buffer = io.BytesIO()
            Image.new("RGB", (8, 8), (i, 0, 0)).save(buffer, "png")
            archive.writestr(f"ä{i}.png", buffer.getvalue())
    data = bytearray(file.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    if kind == "name":
        data[entry + 46] = 0xFF  # the first byte of a name that says it is UTF-8
    else:
        data[entry + 6] = 162  # needs version 16.2
    file.write_bytes(bytes(data))
    with pytest.raises((NotImplementedError, UnicodeDecodeError)):
        zipfile.ZipFile(file)
    assert len(looked_at(open_data(file))) == 3
