"""Tables of boxes: proposals as the function gives them, resumed and found again; templates, functions, annotated objects."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_files import put, rows

import cuewise
from cuewise.cues.objects import propose
from cuewise.data import Sample, open_data
from cuewise.errors import UserError
from cuewise.views.box_sources import ProposedBoxes, TableBoxes, box_source, recalled

Photos = Callable[..., Path]
SCENES = "shapes:scenes?n=40&size=64&objects=3"


def table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "boxes.csv").open()))


def corners(folder: Path, name: str) -> np.ndarray:
    found = [
        [float(r[c]) for c in ("xmin", "ymin", "xmax", "ymax")] for r in table(folder) if r["image"] == name
    ]
    return np.array(found)


def centre(image: np.ndarray) -> list[list[float]]:
    """A function of one's own: two boxes around the centre, the second one reaching outside."""
    height, width = image.shape[:2]
    return [[width / 4, height / 4, 3 * width / 4, 3 * height / 4], [-5, -5, width + 5, 10]]


def scored(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0, 0, 8, 8], [2, 2, 12, 12]]), np.array([0.1, 0.9])


def wrong(image: np.ndarray) -> np.ndarray:
    return np.zeros((3, 5))


@pytest.mark.slow
def test_the_table_holds_the_proposals_of_every_image(photos: Photos, tmp_path: Path) -> None:
    source = photos(3, height=120, width=160)
    (source / "cat" / "bad.jpg").write_bytes(b"\xff\xd8\xff no image")
    put(source / "dog" / "thin.jpg", height=6, width=40)
    result = cuewise.make("boxes", source, tmp_path / "out", workers=2)
    assert result["table"] == str(tmp_path / "out" / "boxes.csv")
    assert (result["made"], [b["path"] for b in result["broken"]]) == (7, ["cat/bad.jpg"])
    data = open_data(str(source))
    for i in range(len(data)):
        if data.name(i) not in ("cat/bad.jpg", "dog/thin.jpg"):
            np.testing.assert_array_equal(
                corners(tmp_path / "out", data.name(i)), propose(data.image(i)).corners
            )
    assert [r["xmin"] for r in table(tmp_path / "out") if r["image"] == "dog/thin.jpg"] == [
        ""
    ]  # looked at: none
    assert (tmp_path / "out" / "preview.png").stat().st_size > 1000
    assert not list((tmp_path / "out").rglob("*.jpg"))
    read = open_data(f"{tmp_path / 'out' / 'boxes.csv'}?images={source}")  # an annotated set like any other
    boxes = read.facts(0).boxes
    assert boxes is not None
    np.testing.assert_array_equal(
        boxes.corners, propose(data.image(int(data.name(0) == "cat/bad.jpg"))).corners
    )


@pytest.mark.slow
def test_it_resumes_to_the_same_bytes(photos: Photos, tmp_path: Path) -> None:
    source = photos(4, height=64, width=64)
    cuewise.make("boxes", source, tmp_path / "whole", workers=0)
    first = cuewise.make("boxes", source, tmp_path / "parts", workers=0, limit=3)
    again = cuewise.make("boxes", source, tmp_path / "parts", workers=2)
    assert (first["made"], again["made"], again["skipped"]) == (3, 5, 3)
    for name in ("boxes.csv", "manifest.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert cuewise.make("boxes", source, tmp_path / "whole")["made"] == 0
    with pytest.raises(UserError, match=r"started with settings\.k = 50, now it is 5"):
        cuewise.make("boxes", source, tmp_path / "whole", set={"k": 5})
    cuewise.make("boxes", source, tmp_path / "whole", set={"k": 5}, overwrite=True, workers=0)
    assert max(len(r["parameters"]["boxes"]) for r in rows(tmp_path / "whole")) == 5


@pytest.mark.slow
def test_pretraining_finds_the_table_of_the_same_images(photos: Photos, tmp_path: Path) -> None:
    source = photos(3, height=64, width=64)
    data, copy = open_data(str(source)), open_data(str(photos(3, name="copy", height=64, width=64)))
    assert isinstance(box_source("proposals", data), ProposedBoxes)
    cuewise.make("boxes", source, tmp_path / "few", workers=0, limit=2)
    cuewise.make("boxes", source, tmp_path / "other", workers=0, set={"k": 3})
    assert (
        recalled(data) is None
    )  # neither a part of the images nor other settings are what pretraining would propose
    cuewise.make("boxes", source, tmp_path / "out", workers=0)
    found = box_source("proposals", data.select([0, 2]))
    assert isinstance(found, TableBoxes)
    assert found.file == tmp_path / "out" / "boxes.csv"
    sample = Sample(data.image(2), 2, data.name(2))
    np.testing.assert_array_equal(found.boxes(sample), ProposedBoxes().boxes(sample))
    assert isinstance(
        box_source("proposals", copy), ProposedBoxes
    )  # the same names elsewhere are other images
    assert isinstance(box_source(str(tmp_path / "other"), data), TableBoxes)
    (tmp_path / "out" / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax\n")
    assert isinstance(box_source("proposals", data), ProposedBoxes)  # changed by hand since


@pytest.mark.slow
def test_a_run_says_where_its_boxes_come_from(
    photos: Photos, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = photos(4, height=64, width=64)
    options: dict[str, Any] = {"crops": "object", "model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 8,
                               "epochs": 1, "steps": 1, "workers": "0", "set": ["moco.queue=16"]}  # fmt: skip
    cuewise.pretrain(str(source), out=str(tmp_path / "a"), **options)
    assert "boxes: proposals, made for every view anew" in capsys.readouterr().err
    cuewise.make("boxes", source, tmp_path / "out", workers=0)
    cuewise.pretrain(str(source), out=str(tmp_path / "b"), **options)
    assert f"boxes: {tmp_path / 'out' / 'boxes.csv'}, 8 images with boxes" in capsys.readouterr().err


def test_functions_of_ones_own(photos: Photos, tmp_path: Path) -> None:
    source = str(photos(1, height=40, width=48))
    cuewise.make("boxes", source, str(tmp_path / "a"), with_=f"{__name__}:centre", workers=0)
    np.testing.assert_array_equal(corners(tmp_path / "a", "cat/000.jpg"), [[12, 10, 36, 30], [0, 0, 48, 10]])
    cuewise.make("boxes", source, str(tmp_path / "b"), with_=f"{__name__}:scored", workers=0, set=["k=1"])
    np.testing.assert_array_equal(corners(tmp_path / "b", "cat/000.jpg"), [[2, 2, 12, 12]])
    with pytest.raises(UserError, match="expected N×4 numbers"):
        cuewise.make("boxes", source, str(tmp_path / "c"), with_=f"{__name__}:wrong", workers=0)


def test_annotated_objects_count_as_boxes(tmp_path: Path) -> None:
    cuewise.make("boxes", SCENES, str(tmp_path / "out"), with_="given", workers=0)
    data = open_data(SCENES)
    boxes = data.facts(5).boxes
    assert boxes is not None
    np.testing.assert_array_equal(corners(tmp_path / "out", data.name(5)), boxes.corners)


@pytest.mark.slow
def test_a_template_of_the_users_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is fitted once, kept in the folder, and can be used again."""
    monkeypatch.setattr("cuewise.cues.objects_fit.SIDES", (10, 20, 40))
    cuewise.make("boxes", SCENES, str(tmp_path / "a"), fit=SCENES, workers=0, set=["k=10"])
    cuewise.make("boxes", SCENES, str(tmp_path / "b"), workers=0, set=["k=10"])
    cuewise.make("boxes", SCENES, str(tmp_path / "c"), workers=0, set=["k=10", f"template={tmp_path / 'a'}"])
    lines = {n: (tmp_path / n / "boxes.csv").read_bytes() for n in "abc"}
    assert lines["a"] == lines["c"] != lines["b"]
    assert (
        len(
            json.loads(json.loads((tmp_path / "a" / "make.json").read_text())["settings"]["template"])[
                "weights"
            ]
        )
        == 8
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"with_": "edges"}, "--with edges: bing, given, or package.module:function"),
        ({"with_": "given"}, "SRC has no annotated objects"),
        ({"with_": "given", "set": ["overlap=0.3"]}, "overlap has no meaning for --with given"),
        ({"with_": "no.such:thing"}, "no.such"),
        ({"fit": "shapes?n=4"}, "it has no annotated objects"),
        ({"set": ["template=nowhere.json"]}, "template=nowhere.json has no template"),
        ({"set": ["k=0"]}, "k=0: must be 1 or more"),
        ({"with_": "bing", "set": ["proposer=given"]}, "given twice"),
        ({"format": "jpeg"}, "writes a table and no images"),
        ({"shards": 10}, "writes a table and no images"),
        ({"both": True}, "--both is for kinds that filter"),
    ],
)
def test_misuse_is_one_line(photos: Photos, tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        cuewise.make("boxes", str(photos(1)), str(tmp_path / "out"), workers=0, **options)


def test_with_is_for_boxes(photos: Photos, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--with is for `make boxes`"):
        cuewise.make("gaussian", str(photos(1)), str(tmp_path / "out"), with_="bing")
