"""Boxes that are left out or cut: counted apart from files, with a question where the whole set looks wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from object_files import write_coco, write_table, write_voc, write_yolo

from cuewise.data import open_data
from cuewise.data.unusable import NAMED, NAMED_BOXES, unusable
from cuewise.errors import UserError

SWAPPED = "are the boxes xmin,ymin,xmax,ymax instead of x,y,width,height?"
SHARES = "boxes lie in 0…1: are they shares of the image instead of pixels?"
Entry = dict[str, Any]


def coco_with(folder: Path, change: Callable[[list[Entry]], object]) -> str:
    """A COCO set with changed annotations: 6 boxes on images a, b and d, of 32×24 pixels."""
    file = write_coco(folder)
    content = json.loads(file.read_text())
    change(content["annotations"])
    file.write_text(json.dumps(content))
    return f"{file}?images={folder}/images"


def listed(spec: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = open_data(spec).fingerprint()["skipped"]
    return found


def boxes_of(spec: str) -> int:
    data = open_data(spec)
    return sum(len(data.facts(i).boxes or ()) for i in range(len(data)))


def test_files_boxes_left_out_and_boxes_cut_are_counted_apart(tmp_path: Path) -> None:
    def change(entries: list[Entry]) -> None:
        entries[0]["bbox"] = [20, 10, 30, 5]  # a.jpg#1: cut
        entries[1]["bbox"] = [3, 3, 0, 5]  # a.jpg#2: no area
        entries[2]["image_id"] = 99

    spec = coco_with(tmp_path / "set", change)
    (tmp_path / "set" / "images" / "c.jpg").write_bytes(b"")
    found = listed(spec)
    assert {f["path"]: f.get("box") for f in found} == {
        "a.jpg#1": "cut", "a.jpg#2": "left out", "annotation 100": "left out", "c.jpg": None,
    }  # fmt: skip
    said = unusable(found, "photos")
    assert said.startswith(
        "1 file of photos could not be used: c.jpg (empty file); 2 boxes of photos were left out: "
    )
    assert "a.jpg#2 (box of zero area (3, 3, 3, 8)), annotation 100 (of an unknown image 99)" in said
    assert "; 1 box of photos was cut to its image: a.jpg#1 (box (20, 10, 50, 15) reaches outside" in said
    assert "?" not in said
    assert "\n" not in said
    assert boxes_of(spec) == 4  # the cut one is used


def test_only_a_few_boxes_are_named() -> None:
    files = [{"path": f"{i}.jpg#1", "why": "small", "box": "left out"} for i in range(NAMED_BOXES + 2)]
    assert unusable(files).startswith(f"{NAMED_BOXES + 2} boxes were left out: 0.jpg#1 (small), 1")
    assert unusable(files).endswith(", and 2 more")
    assert unusable([*files, {"path": "a.jpg", "why": "empty file"}]).startswith(
        "1 file could not be used: a.jpg"
    )


def test_unknown_classes_are_named_once(tmp_path: Path) -> None:
    def unknown(entries: list[Entry]) -> None:
        for k, entry in enumerate(entries):
            entry["category_id"] = 159 + k % 2

    found = listed(coco_with(tmp_path / "two", unknown))
    assert {f["class"] for f in found} == {"category 159", "category 160"}
    assert unusable(found).startswith(
        "6 boxes were left out: 6 of 2 unknown classes ('category 159', 'category 160'); add unknown classes to the file's"
    )
    spec = coco_with(tmp_path / "one", lambda entries: entries[0].update(category_id=7, bbox=[1, 1, 9, 9]))
    assert unusable(listed(spec)).startswith("1 box was left out: 1 of the unknown class 'category 7'; add")
    many = [{"path": f"{i}", "why": "unknown", "box": "left out", "class": f"c{i}"} for i in range(NAMED + 1)]
    assert f"of {NAMED + 1} unknown classes ('c0', 'c1', 'c2', 'c3', 'c4', …); add" in unusable(many)


def test_corners_in_place_of_sizes_are_asked_about(tmp_path: Path) -> None:
    def corners(entries: list[Entry]) -> None:
        entries[2]["bbox"] = [20, 4, 10, 18]
        for entry in entries:
            x, y, width, height = entry["bbox"]
            entry["bbox"] = [x, y, x + width, y + height]

    def far(entries: list[Entry]) -> None:  # outside either way
        for entry in entries:
            entry["bbox"] = [20, 3, 90, 90]

    found = listed(coco_with(tmp_path / "xyxy", corners))
    assert sum(f["box"] == "cut" for f in found) == 3 + 1
    assert unusable(found).endswith("; " + SWAPPED)
    assert unusable(found).count(SWAPPED) == 1
    assert SWAPPED not in unusable(listed(coco_with(tmp_path / "far", far)))
    one = coco_with(tmp_path / "one", lambda entries: entries[0].update(bbox=[10, 10, 30, 20]))
    assert [f["box"] for f in listed(one)] == ["cut"]
    assert SWAPPED not in unusable(listed(one))
    table = write_table(tmp_path / "table")  # a table has corners
    table.write_text("image,label,xmin,ymin,xmax,ymax\na.jpg,cat,10,10,40,30\n")
    assert SWAPPED not in unusable(listed(f"{table}?images={tmp_path}/table/images"))


def test_boxes_below_one_pixel_are_left_out(tmp_path: Path) -> None:
    def tiny(entries: list[Entry]) -> None:
        entries[0]["bbox"] = [3, 3, 0.5, 9]
        entries[1]["bbox"] = [31.6, 3, 9, 9]  # less than a pixel of it is inside
        entries[2]["bbox"] = [3, 3, 1, 1]
        entries[3]["bbox"] = [40, 3, 0.5, 0.5]

    spec = coco_with(tmp_path / "set", tiny)
    why = {f["path"]: f["why"] for f in listed(spec)}
    assert why == {
        "a.jpg#1": "box (3, 3, 3.5, 12) is below one pixel in width or height",
        "a.jpg#2": "box (31.6, 3, 40.6, 12) lies outside the image of 32×24",
        "d.jpg#1": "box (40, 3, 40.5, 3.5) lies outside the image of 32×24",
    }
    assert boxes_of(spec) == 3
    assert SHARES not in unusable(listed(spec))


def test_a_box_of_one_pixel_in_rounded_shares_is_used(tmp_path: Path) -> None:
    file = write_yolo(tmp_path)
    (tmp_path / "labels" / "val" / "a.txt").write_text(
        "1 0.5 0.5 0.03124 0.04166\n"
    )  # 0.9997 × 0.9998 pixels
    data = open_data(f"{file}?split=val")
    assert len(data.facts(0).boxes or ()) == 1
    assert data.fingerprint()["skipped"] == []


def test_shares_in_place_of_pixels_are_asked_about(tmp_path: Path) -> None:
    def shares(entries: list[Entry]) -> None:
        for entry in entries:
            entry["bbox"] = (np.array(entry["bbox"]) / [32, 24, 32, 24]).tolist()

    spec = coco_with(tmp_path / "coco", shares)
    found = listed(spec)
    assert boxes_of(spec) == 0
    assert len(found) == 6
    assert unusable(found).endswith("; all " + SHARES)
    half = listed(coco_with(tmp_path / "half", lambda entries: shares(entries[:3])))
    assert len(half) == 3
    assert SHARES not in unusable(half)

    table = write_table(tmp_path / "table")
    table.write_text("image,label,xmin,ymin,xmax,ymax\na.jpg,cat,0.1,0.1,0.4,0.9\n")
    assert "all " + SHARES in unusable(listed(f"{table}?images={tmp_path}/table/images"))
    rows = [f"a.jpg,cat,0.1,0.{k},0.4,0.95\n" for k in range(9)] + ["a.jpg,cat,0.5,0.5,1.02,1.6\n"]
    table.write_text("image,label,xmin,ymin,xmax,ymax\n" + "".join(rows))
    assert "9 of 10 " + SHARES in unusable(
        listed(f"{table}?images={tmp_path}/table/images")
    )  # one is 1.1 high
    yolo = write_yolo(tmp_path / "yolo")
    (tmp_path / "yolo" / "labels" / "val" / "b.txt").write_text("1 0.5 0.5 0.001 0.001\n")
    assert SHARES not in unusable(listed(f"{yolo}?split=val"))  # shares are what YOLO has


def test_the_question_stands_once_in_the_list(tmp_path: Path) -> None:
    spec = coco_with(tmp_path / "set", lambda entries: [e.update(bbox=[0.1, 0.1, 0.5, 0.5]) for e in entries])
    assert sum("doubt" in f for f in listed(spec)) == 1
    joined: list[dict[str, str]] = open_data([spec, spec + "&n=2"]).fingerprint()["skipped"]
    assert unusable(joined).count(SHARES) == 1


def test_a_set_without_images_counts_no_boxes(tmp_path: Path) -> None:
    def drop(entries: list[Entry]) -> None:
        entries[0]["image_id"] = 99

    spec = coco_with(tmp_path / "set", drop)
    for image in (tmp_path / "set" / "images").iterdir():
        image.rename(image.with_name("x" + image.name))
    with pytest.raises(UserError, match="no annotated image can be used, 4 were left out"):
        open_data(spec)
    notes = write_voc(tmp_path / "voc") / "Annotations" / "a.xml"
    notes.write_text(notes.read_text().replace("<name>cat</name>", "<name></name>"))
    (entry,) = listed(str(tmp_path / "voc"))
    assert entry == {"path": "a.jpg#1", "why": "box without a class", "box": "left out"}
