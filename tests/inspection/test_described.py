"""The first line of `cuewise inspect`: classes of objects that are there."""

from __future__ import annotations

import json
from pathlib import Path

from cuewise.data import open_data
from cuewise.inspection.run import described
from tests.probes.object_sets import write_coco


def test_only_classes_with_a_box_are_counted(tmp_path: Path) -> None:
    file = write_coco(tmp_path / "coco")
    spec, content = f"{file}?images={tmp_path}/coco/images", json.loads(file.read_text())
    assert described(open_data(spec)) == "4 images with objects of 2 classes: disc, square"
    content["categories"].append({"id": 9, "name": "kite"})
    file.write_text(json.dumps(content))
    assert described(open_data(spec)) == "4 images with objects of 2 classes: disc, square"
    squares = [a for a in content["annotations"] if a["category_id"] == 2]
    file.write_text(json.dumps({**content, "annotations": squares}))
    assert described(open_data(spec)) == "4 images with objects of 1 class: square"
    assert described(open_data(spec).select([0])).startswith("1 image, no objects")  # it has a disc


def test_a_set_without_a_box_has_no_objects(tmp_path: Path) -> None:
    file = write_coco(tmp_path / "coco")
    spec, content = f"{file}?images={tmp_path}/coco/images", json.loads(file.read_text())
    expected = "4 images, no objects: none of the 2 classes that it lists has one"
    file.write_text(json.dumps({**content, "annotations": []}))
    assert described(open_data(spec)) == expected
    for entry in content["annotations"]:
        entry["bbox"] = [0.1, 0.1, 0.5, 0.5]
    file.write_text(json.dumps(content))
    assert described(open_data(spec)) == expected


def test_labels_are_described_as_before() -> None:
    assert described(open_data("shapes?n=12&size=32")).startswith("12 images of 16 classes: star, ")
    assert described(open_data("shapes:scenes?n=30&size=64")).startswith("30 images of 4 classes: ")
