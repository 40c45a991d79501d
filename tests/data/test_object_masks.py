"""Where objects are: masks under the images' names, annotated objects, and masks that do not match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuewise.cues.cutout import hole_of
from cuewise.data import BrokenImage, open_data
from cuewise.data.object_masks import ObjectMasks, object_masks
from cuewise.data.shapes import ShapeSet
from cuewise.errors import UserError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for i in range(3):
        for part, array in {
            "images": np.full((20, 30, 3), 40 * i, np.uint8),
            "white": np.pad(np.full((4, 6), 255, np.uint8), ((2, 14), (3, 21))),
            "index": np.pad(np.full((4, 6), 1, np.uint8), ((2, 14), (3, 21)), constant_values=2),
            "wrong": np.full((20, 31), 255, np.uint8),
        }.items():
            (tmp_path / part / "a").mkdir(parents=True, exist_ok=True)
            name = f"{i}.jpg" if part == "images" else f"{i}.png"
            Image.fromarray(array).save(tmp_path / part / "a" / name)
    return tmp_path


def masks(root: Path, part: str, value: int | None = None) -> ObjectMasks:
    images, given = open_data(str(root / "images")), open_data(str(root / part))
    return object_masks(images, given, value, f"--masks {part}", "photos")


@pytest.mark.parametrize(("part", "value"), [("white", None), ("white", 255), ("index", 1)])
def test_masks_by_name(photos: Path, part: str, value: int | None) -> None:
    found = masks(photos, part, value)
    wanted = np.zeros((20, 30), bool)
    wanted[2:6, 3:9] = True
    assert np.array_equal(found.outline(1), wanted)
    assert np.array_equal(found.image(1), np.repeat(255 * wanted[..., None].astype(np.uint8), 3, 2))
    assert [found.name(i) for i in range(3)] == ["a/0.jpg", "a/1.jpg", "a/2.jpg"]


def test_masks_that_do_not_match(photos: Path) -> None:
    with pytest.raises(UserError, match=r"values 1, 2 and no white"):
        masks(photos, "index")
    with pytest.raises(BrokenImage, match="its mask has 31×20 pixels, the image 30×20"):
        masks(photos, "wrong").outline(0)
    (photos / "white" / "a" / "1.png").unlink()
    assert masks(photos, "white").outline(1) is None
    with pytest.raises(BrokenImage, match="no mask and no box"):
        masks(photos, "white").image(1)
    for file in (photos / "white" / "a").iterdir():
        file.rename(file.with_name("x" + file.name))
    with pytest.raises(UserError, match="none of its 2 files is named as an image of photos"):
        masks(photos, "white")


def test_annotated_objects_of_another_set(photos: Path) -> None:
    table = photos / "boxes.csv"
    table.write_text("image,label,xmin,ymin,xmax,ymax\na/1.jpg,cat,3,2,9,6\n")
    images = open_data(str(photos / "images"))
    given = open_data(f"{table}?images={photos / 'images'}")
    found = object_masks(images, given, None, "--masks", "photos")
    assert found.outline(1) is not None
    assert found.outline(1).sum() == 24
    assert found.outline(0) is None


@pytest.mark.parametrize("split", ["aligned", "silhouette", "rotated", "scenes"])
def test_the_embedded_shapes_know_their_objects(split: str) -> None:
    drawn = ShapeSet(split, n=6, size=48)
    for i in range(6):
        outline, image = drawn.outline(i), drawn.image(i).astype(int)
        assert outline is not None
        assert 0.03 < outline.mean() < 0.7
        if split == "silhouette":
            assert (
                np.array_equal(outline, image[..., 0] < 127)
                or (outline != (image[..., 0] < 128)).mean() < 0.01
            )
    assert ShapeSet("texture_only", n=2, size=32).outline(0) is None


def test_outlines_fit_the_pictures() -> None:
    """Outside its outline a shape in the one palette shows the one background: slow noise, the same in every image."""
    drawn = ShapeSet("aligned", n=4, size=48, palette="one")
    found = ObjectMasks(open_data("shapes:aligned?n=4&size=48&palette=one"))
    for i in range(4):
        outline = found.outline(i)
        assert np.array_equal(outline, drawn.outline(i))
        both = ~(hole_of(outline) | hole_of(drawn.outline(0)))
        assert (drawn.image(i)[both] != drawn.image(0)[both]).any(1).mean() < 0.02  # soft edges
        edge = np.abs(np.diff(drawn.image(i).astype(int), axis=1)).sum(2) > 60
        assert (
            edge[outline[:, 1:] != outline[:, :-1]].mean() > 0.5
        )  # where the outline is, the picture changes
