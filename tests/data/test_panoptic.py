"""COCO's panoptic files: the class of every pixel from the colours of a PNG."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import encoded, pixels
from PIL import Image

from cuewise.data import open_data
from cuewise.errors import UserError

CATEGORIES = [
    {"id": 7, "name": "sky", "isthing": 0},
    {"id": 3, "name": "dog", "isthing": 1},
    {"id": 1, "name": "cat", "isthing": 1},
]
CAT, DOG, SKY, VOID = 1, 2, 3, 255  # things in the order of their ids, then stuff
IDS = {"cat": 70_000, "dog": 258, "sky": 9, "crowd": 1_000_001}


def segments(height: int = 24, width: int = 32) -> np.ndarray:
    """A cat, a dog, a crowd of dogs, sky, an unknown segment and pixels of none, by quarters and corners."""
    ids = np.full((height, width), IDS["sky"])
    ids[12:, :16] = IDS["cat"]
    ids[12:, 16:] = IDS["dog"]
    ids[:4, :4] = IDS["crowd"]
    ids[:2, 30:] = 0
    ids[2:4, 30:] = 12345
    return ids


def png(ids: np.ndarray) -> bytes:
    colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], -1).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(colours).save(out, "PNG")
    return out.getvalue()


def write(root: Path, folder: str = "panoptic", **changes: Any) -> Path:
    (root / "images").mkdir(parents=True)
    (root / folder).mkdir()
    (root / "images" / "a.jpg").write_bytes(encoded(pixels(seed=0)))
    (root / folder / "a.png").write_bytes(png(segments()))
    info = [
        {"id": IDS["cat"], "category_id": 1, "bbox": [0, 12, 16, 12], "iscrowd": 0},
        {"id": IDS["dog"], "category_id": 3, "bbox": [16, 12, 16, 12], "iscrowd": 0},
        {"id": IDS["crowd"], "category_id": 3, "bbox": [0, 0, 4, 4], "iscrowd": 1},
        {"id": IDS["sky"], "category_id": 7, "bbox": [0, 0, 32, 12], "iscrowd": 0},
    ]
    content = {
        "images": [{"id": 5, "file_name": "a.jpg", "width": 32, "height": 24}],
        "annotations": [{"image_id": 5, "file_name": "a.png", "segments_info": info, **changes}],
        "categories": CATEGORIES,
    }
    (root / "panoptic.json").write_text(json.dumps(content))
    return root / "panoptic.json"


def test_pixels_have_the_class_of_their_segment(tmp_path: Path) -> None:
    data = open_data(f"{write(tmp_path)}?images=images")
    assert data.object_classes == ("cat", "dog", "sky")
    facts = data[0].facts
    wanted = np.full((24, 32), SKY)
    wanted[12:, :16], wanted[12:, 16:], wanted[:4, :4], wanted[:4, 30:] = CAT, DOG, VOID, VOID
    assert np.array_equal(facts.mask, wanted)
    assert facts.boxes.corners.tolist() == [[0, 12, 16, 24], [16, 12, 32, 24], [0, 0, 4, 4]], (
        "things alone have boxes"
    )
    assert facts.boxes.flags["crowd"].tolist() == [False, False, True]
    assert facts.labels.tolist() == [True, True, False]


def test_in_a_zip_and_in_a_folder_of_another_name(tmp_path: Path) -> None:
    file = write(tmp_path / "set", folder="colours")
    with pytest.raises(UserError, match="masks=FOLDER"):
        open_data(f"{file}?images=images")
    plain = open_data(f"{file}?images=images&masks=colours")[0].facts.mask
    archive = tmp_path / "set.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in sorted((tmp_path / "set").rglob("*.*")):
            out.write(path, path.relative_to(tmp_path / "set").as_posix())
    packed = open_data(f"{archive}/panoptic.json?images=images&masks=colours")[0].facts.mask
    assert np.array_equal(plain, packed)
    assert plain.max() == VOID


@pytest.mark.parametrize("changes", [{"segments_info": 3}, {"file_name": None}, {"image_id": [1]}])
def test_annotations_that_say_nothing_are_listed(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = write(tmp_path, **changes)
    content = json.loads(file.read_text())
    content["annotations"].append({"image_id": 5, "file_name": "a.png", "segments_info": []})
    file.write_text(json.dumps(content))
    data = open_data(f"{file}?images=images")
    assert len(data.fingerprint()["skipped"]) == 1
    assert (data[0].facts.mask == VOID).all()


def test_masks_are_for_panoptic_files(tmp_path: Path) -> None:
    file = write(tmp_path)
    content = json.loads(file.read_text())
    content["annotations"] = [{"id": 1, "image_id": 5, "category_id": 1, "bbox": [0, 0, 5, 5]}]
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="panoptic files"):
        open_data(f"{file}?images=images&masks=panoptic")


def test_a_broken_png_names_itself(tmp_path: Path) -> None:
    file = write(tmp_path)
    (tmp_path / "panoptic" / "a.png").write_bytes(png(segments())[:60])
    data = open_data(f"{file}?images=images")
    with pytest.raises(Exception, match=r"a\.png"):
        _ = data[0].facts.mask
