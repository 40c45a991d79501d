"""Sets with objects: every format gives the same boxes; what cannot be used is named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from image_files import encoded, pixels
from object_files import OBJECTS, voc_xml, write_coco, write_table, write_voc, write_yolo, zipped
from PIL import Image as Pillow

from cuewise.data import BrokenImage, open_data
from cuewise.errors import UserError

WRITERS = {"voc": write_voc, "coco": write_coco, "yolo": write_yolo, "table": write_table}
QUERY = {"voc": "", "coco": "?images=images", "yolo": "?split=val", "table": "?images=images"}


def why(data: object) -> dict[str, str]:
    return {s["path"]: s["why"] for s in data.fingerprint()["skipped"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("inside_zip", [False, True])
@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_same_objects(kind: str, inside_zip: bool, tmp_path: Path) -> None:
    root = tmp_path / "set"
    file = WRITERS[kind](root)
    spec = str(file)
    if inside_zip:
        archive = zipped(root, tmp_path / "set.zip")
        spec = str(archive) if kind == "voc" else f"{archive}/{file.relative_to(root)}"
    data = open_data(spec + QUERY[kind])
    assert [data.name(i) for i in range(4)] == ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    assert data.object_classes == ("bird", "cat", "dog")
    assert data.fingerprint()["skipped"] == []
    data = pickle.loads(pickle.dumps(data))
    for i, (name, objects) in enumerate(OBJECTS.items()):
        sample = data[i]
        boxes = sample.facts.boxes
        assert sample.image.shape == (24, 32, 3), name
        assert boxes is not None
        assert sample.facts.labels is not None
        np.testing.assert_allclose(
            boxes.corners, np.array([o[1:] for o in objects]).reshape(-1, 4), atol=1e-4
        )
        assert [data.object_classes[k] for k in boxes.classes] == [o[0] for o in objects]
        assert {data.object_classes[k] for k in np.flatnonzero(sample.facts.labels)} == {
            o[0] for o in objects
        }


def test_a_voc_set_names_its_images(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    assert [open_data(f"{root}?set=val").name(i) for i in range(2)] == ["c.jpg", "d.jpg"]
    with pytest.raises(UserError, match="no set 'test'; there are: train, val"):
        open_data(f"{root}?set=test")
    wrapped = zipped(root, tmp_path / "kit.zip", "VOCdevkit/VOC2007/")
    assert len(open_data(f"{wrapped}?set=train")) == 2


def test_only_sets_with_objects_take_their_options(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.jpg").write_bytes(encoded(pixels()))
    with pytest.raises(UserError, match=r"\?set= is for sets with objects"):
        open_data(f"{tmp_path}/plain?set=val")
    file = write_coco(tmp_path / "coco")
    with pytest.raises(UserError, match=r"'set' is not an option of this data set; write \?images="):
        open_data(f"{file}?set=val")
    with pytest.raises(UserError, match="no folder 'nowhere' with images"):
        open_data(f"{file}?images=nowhere")


def test_what_a_voc_set_cannot_use_is_named(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    notes = root / "Annotations"
    (notes / "a.xml").write_text(
        voc_xml([("cat", 0, 0, 10, 12), ("cat", 40, 0, 50, 9), ("cat", 5, 5, 5, 9), ("cat", 20, 9, 60, 20), ("", 1, 1, 5, 5)])
    )  # fmt: skip
    (notes / "b.xml").write_text("<annotation><object>")
    (notes / "c.xml").unlink()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><annotation>&b;</annotation>'
    (notes / "d.xml").write_bytes(bomb.encode("utf-16"))
    data = open_data(str(root))
    assert len(data) == 1
    found = why(data)
    assert "lies outside the image of 32×24" in found["a.jpg#2"]
    assert "zero area" in found["a.jpg#3"]
    assert "reaches outside" in found["a.jpg#4"]
    assert "cut to it" in found["a.jpg#4"]
    assert found["a.jpg#5"] == "box without a class"
    assert "broken XML" in found["Annotations/b.xml"]
    assert "without annotation" in found["c.jpg"]
    assert "document type" in found["Annotations/d.xml"]
    boxes = data.facts(0).boxes
    assert boxes is not None
    np.testing.assert_array_equal(boxes.corners, [[0, 0, 10, 12], [20, 9, 32, 20]])
    (notes / "a.xml").unlink()
    with pytest.raises(UserError, match="no annotated image can be used, 4 were left out"):
        open_data(str(root))


def test_what_a_coco_file_cannot_use_is_named(tmp_path: Path) -> None:
    file = write_coco(tmp_path / "coco")
    content = json.loads(file.read_text())
    content["images"].append({"id": 77, "file_name": "gone.jpg", "width": 9, "height": 9})
    content["annotations"] += [
        {"id": 1000, "image_id": 1, "category_id": 99, "bbox": [0, 0, 5, 5]},
        {"id": 1001, "image_id": 55, "category_id": 10, "bbox": [0, 0, 5, 5]},
        {"id": 1002, "image_id": 1, "category_id": 10, "bbox": [0, 0, "x", 5]},
    ]
    file.write_text(json.dumps(content))
    data = open_data(f"{file}?images={tmp_path}/coco/images")
    assert len(data) == 4
    found = why(data)
    assert found["gone.jpg"] == "annotated, but there is no such image"
    assert found["b.jpg#2"] == "unknown class 'category 99'"
    assert "no numbers" in found["b.jpg#3"]
    assert found["annotation 1001"] == "of an unknown image 55"
    file.write_text("{")
    with pytest.raises(UserError, match="broken JSON"):
        open_data(f"{file}?images=images")
    file.write_text("{}")
    with pytest.raises(UserError, match="is no COCO file"):
        open_data(f"{file}?images=images")


def test_what_yolo_and_tables_cannot_use_is_named(tmp_path: Path) -> None:
    file = write_yolo(tmp_path / "yolo")
    labels = tmp_path / "yolo" / "labels" / "val"
    (labels / "b.txt").write_text("7 0.5 0.5 0.2 0.2\n1 0.5 0.5\n1 0.5 0.5 0.25 0.5\n")
    (labels / "c.txt").unlink()
    data = open_data(f"{file}?split=val")
    found = why(data)
    assert found["b.jpg#1"] == "unknown class 'class 7'"
    assert "no numbers" in found["b.jpg#2"]
    assert "no text file" in found["c.jpg"]
    boxes = data.facts(1).boxes
    assert boxes is not None
    np.testing.assert_allclose(boxes.corners, [[12, 6, 20, 18]])
    with pytest.raises(UserError, match="split 'test' is not there; splits in the file: val"):
        open_data(f"{file}?split=test")

    table = write_table(tmp_path / "table")
    flags = open_data(f"{table}?images=images").facts(3).boxes.flags  # type: ignore[union-attr]
    np.testing.assert_array_equal(flags["out_of_context"], [False, False, True])
    table.write_text("picture,label\n")
    with pytest.raises(UserError, match="it needs image,label,xmin,ymin,xmax,ymax"):
        open_data(f"{table}?images=images")


def test_an_image_of_another_size_than_annotated_is_broken(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    (root / "JPEGImages" / "a.jpg").write_bytes(encoded(pixels(48, 64)))
    with pytest.raises(BrokenImage, match="has 64×48 pixels, its annotation says 32×24"):
        open_data(str(root)).image(0)


def test_difficult_objects_do_not_count_as_labels(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    file = root / "Annotations" / "b.xml"
    file.write_text(file.read_text().replace("<difficult>0<", "<difficult>1<"))
    facts = open_data(str(root)).facts(1)
    assert facts.labels is not None
    assert facts.boxes is not None
    assert not facts.labels.any()
    assert facts.boxes.flags["difficult"].all()


def test_masks_come_from_index_images_or_polygons(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    mask = np.zeros((24, 32), np.uint8)
    mask[3:9, 4:20] = 2
    picture = Pillow.fromarray(mask, "P")
    picture.putpalette(list(range(256)) * 3)
    (root / "SegmentationClass").mkdir()
    picture.save(root / "SegmentationClass" / "b.png")
    data = open_data(str(root))
    facts = data.facts(1)
    (root / "SegmentationClass" / "b.png").rename(tmp_path / "aside.png")
    assert data[1].facts.boxes is not None  # masks are read where they are asked for, and nowhere else
    (tmp_path / "aside.png").rename(root / "SegmentationClass" / "b.png")
    np.testing.assert_array_equal(facts.mask, mask)
    assert data.facts(0).mask is None

    file = write_coco(tmp_path / "coco")
    content = json.loads(file.read_text())
    content["annotations"][2]["segmentation"] = [[3, 4, 19, 4, 19, 19, 3, 19]]
    file.write_text(json.dumps(content))
    drawn = open_data(f"{file}?images=images").facts(1).mask
    assert drawn is not None
    assert drawn[4:20, 3:20].min() == drawn.max() == 2  # cat is class 1
    assert (drawn > 0).sum() == 16 * 17


def test_joined_sets_share_their_object_classes(tmp_path: Path) -> None:
    voc, coco = write_voc(tmp_path / "voc"), write_coco(tmp_path / "coco")
    data = open_data([f"{voc}?set=train", f"{coco}?images=images"])
    assert data.object_classes == ("bird", "cat", "dog")  # voc train alone has no bird
    boxes = data.facts(0).boxes
    assert boxes is not None
    assert [data.object_classes[k] for k in boxes.classes] == ["cat", "dog"]
