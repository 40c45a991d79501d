"""Images that two sets share are found by content, whatever they are called and wherever they are stored."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuewise.data import open_data
from cuewise.data.overlap import check_overlap, refuse_same
from cuewise.errors import UserError


def photograph(seed: int, side: int = 64) -> Image.Image:
    """Smooth random shading: what a perceptual hash is made for."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
    return small.resize((side, side), Image.Resampling.BICUBIC)


@pytest.fixture
def sets(tmp_path: Path) -> tuple[Path, Path]:
    for part, seeds in (("train", range(10)), ("test", range(7, 14))):
        for seed in seeds:
            folder = tmp_path / part / "ab"[seed % 2]
            folder.mkdir(parents=True, exist_ok=True)
            photograph(seed).save(folder / f"{part}{seed}.png")
    return tmp_path / "train", tmp_path / "test"


def test_equal_bytes_under_other_names(sets: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = (open_data(str(p)) for p in sets)
    found = check_overlap(train, test)
    assert {test.name(int(i)) for i in found.same} == {"b/test7.png", "a/test8.png", "b/test9.png"}
    assert ("b/test7.png", "b/train7.png") in found.pairs
    assert str(found).startswith("3 of 7 test images are training images")
    assert found.as_dict()["shared"] == 3
    refuse_same(found, "test")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for file in sets[1].rglob("*.png"):
            archive.write(file, file.relative_to(sets[1]).as_posix())
    assert check_overlap(train, open_data(str(tmp_path / "t.zip"))).count == 3


def test_identical_sets_are_refused(sets: tuple[Path, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(sets[0], tmp_path / "copy")
    (copy / "a" / "broken.png").write_bytes((copy / "a" / "train0.png").read_bytes()[:60])
    found = check_overlap(open_data(str(sets[0])), open_data(str(copy)))
    assert found.whole
    with pytest.raises(UserError, match="all of its 10 images are in --train"):
        refuse_same(found, "copy")
    none = check_overlap(open_data(str(sets[0] / "a")), open_data(str(sets[0] / "b")))
    assert (none.count, str(none)) == (0, "")


def test_pixels_where_there_are_no_bytes(sets: tuple[Path, Path], tmp_path: Path) -> None:
    shapes = open_data("shapes:aligned?n=6&size=32")
    data = open_data(["shapes:aligned?n=6&size=32", str(sets[0])])
    assert check_overlap(data, shapes).whole
    Image.fromarray(shapes.image(2)).save(tmp_path / "two.png")
    found = check_overlap(shapes, open_data(str(tmp_path / "two.png").rpartition("/")[0] + "/test"))
    assert found.count == 0
    (tmp_path / "one").mkdir()
    shutil.copy(tmp_path / "two.png", tmp_path / "one" / "x.png")
    assert check_overlap(shapes, open_data(str(tmp_path / "one"))).pairs[0][1] == shapes.name(2)


def test_near_duplicates_are_an_option(sets: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    photograph(3).resize((50, 50)).save(other / "smaller.jpg", quality=70)
    photograph(99).save(other / "new.png")
    Image.new("RGB", (64, 64), "grey").save(other / "grey.png")
    train, test = open_data(str(sets[0])), open_data(str(other))
    assert check_overlap(train, test).count == 0
    found = check_overlap(train, test, near=True)
    assert found.near is not None
    assert [(test.name(int(i)), pair[1]) for i, pair in zip(found.near, found.pairs)] == [
        ("smaller.jpg", "b/train3.png")
    ]
    assert not found.whole
