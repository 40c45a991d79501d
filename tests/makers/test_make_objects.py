"""`make background`, `make position`, `make size`: from a user's folder and masks to the set."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cuewise
from cuewise.cues.cutout import change_background, object_at
from cuewise.data import open_data
from cuewise.errors import UserError

LEVELS = {"a": 20, "b": 120, "c": 220}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A box of its own colour on the class's grey; index masks with 1 for the object and 2 for the rest."""
    for name, level in LEVELS.items():
        for part in ("src", "masks"):
            (tmp_path / part / name).mkdir(parents=True)
        for i in range(3):
            image = np.full((24, 30, 3), level, np.uint8)
            image[8:14, 10 + i : 18 + i] = (200, 10 * i, 60)
            mask = np.full((24, 30), 2, np.uint8)
            mask[8:14, 10 + i : 18 + i] = 1
            Image.fromarray(image).save(tmp_path / "src" / name / f"{i}.png")
            Image.fromarray(mask).save(tmp_path / "masks" / name / f"{i}.png")
    return tmp_path


def made(photos: Path, kind: str, **settings: object) -> tuple[Path, list[dict[str, object]]]:
    out = photos / f"{kind}-{len(list(photos.iterdir()))}"
    given = {"masks": str(photos / "masks"), "value": 1, **settings}
    cuewise.make(kind, photos / "src", out, set=given, workers=0)
    return out, [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kind", ["same", "other", "removed", "only"])
def test_background(photos: Path, kind: str) -> None:
    out, rows = made(photos, "background", ground=kind)
    assert len(rows) == 9
    for row in rows:
        source, i = str(row["source"]).split("/")[0], int(str(row["source"]).split("/")[1][0])
        image = np.asarray(Image.open(out / str(row["name"])))
        mask = np.zeros((24, 30), bool)
        mask[8:14, 10 + i : 18 + i] = True
        ground = {"removed": 128, "only": LEVELS[source]}.get(kind)
        if ground is None:
            partner = str(row["parameters"]["background"])  # type: ignore[index]
            assert (partner.split("/")[0] == source) == (kind == "same")
            assert partner != row["source"]
            ground = LEVELS[partner.split("/")[0]]
        assert (image[~mask] == ground).all()
        original = np.asarray(Image.open(photos / "src" / str(row["source"])))
        wanted = np.full_like(image, ground) if kind == "only" else original
        assert np.array_equal(image[mask], wanted[mask])


@pytest.mark.slow
def test_position_and_size_are_those_of_the_operator(photos: Path) -> None:
    mask = np.zeros((24, 30), bool)
    mask[8:14, 10:18] = True
    original = np.asarray(Image.open(photos / "src" / "a" / "0.png"))
    out, _ = made(photos, "position", down=1.0, right=0.0)
    assert np.array_equal(Image.open(out / "a" / "0.png"), object_at(original, mask, (1.0, 0.0)))
    out, rows = made(photos, "position")
    places = [(row["parameters"]["down"], row["parameters"]["right"]) for row in rows]  # type: ignore[index]
    assert len(set(places)) == 9
    out, rows = made(photos, "size", share="[0.25,0.75]")
    shares = [row["parameters"]["share"] for row in rows]  # type: ignore[index]
    assert 0.25 < min(shares) < max(shares) < 0.75
    assert np.array_equal(Image.open(out / "a" / "0.png"), object_at(original, mask, (0.5, 0.5), shares[0]))
    out, _ = made(photos, "size", share=0.5)
    assert np.array_equal(Image.open(out / "a" / "0.png"), object_at(original, mask, (0.5, 0.5), 0.5))


def test_a_part_of_a_set_and_the_embedded_shapes(tmp_path: Path) -> None:
    cuewise.make(
        "background", "shapes:aligned?n=20&size=32", tmp_path / "out", set={"ground": "other"}, workers=0
    )
    data = open_data("shapes:aligned?n=20&size=32")
    assert len(open_data(str(tmp_path / "out"))) == 20
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]
    place = {data.name(i): i for i in range(20)}
    i, j = place[rows[3]["source"]], place[rows[3]["parameters"]["background"]]
    outlines = [data.sources[0].outline(k) for k in (i, j)]  # type: ignore[attr-defined]
    wanted = change_background(data.image(i), outlines[0], "other", (data.image(j), outlines[1]))
    assert np.array_equal(Image.open(tmp_path / "out" / rows[3]["name"]), wanted)


@pytest.mark.slow
def test_errors_are_one_line(photos: Path) -> None:
    with pytest.raises(UserError, match="no ground 'others'; did you mean other"):
        made(photos, "background", ground="others")
    with pytest.raises(
        UserError, match="values 1, 2 and no white; say which one is the object: --set value=N"
    ):
        made(photos, "background", value=-1)
    with pytest.raises(UserError, match="SRC has no masks and no boxes"):
        made(photos, "size", masks="")
    with pytest.raises(UserError, match=r"none of the 9 images could be made.*mask is empty"):
        made(photos, "position", value=7)
    with pytest.raises(UserError, match="share="):
        made(photos, "size", share="[0.8,0.2]")
    with pytest.raises(UserError, match="down=2"):
        made(photos, "position", down=2)
    with pytest.raises(UserError, match="no classes"):
        cuewise.make("background", photos / "src" / "a", photos / "flat", workers=0,
                     set={"masks": str(photos / "masks" / "a"), "value": 1})  # fmt: skip
    (photos / "masks" / "a" / "1.png").unlink()
    _, rows = made(photos, "background", ground="removed")
    assert [row["broken"] for row in rows if row["name"] is None] == ["has no mask and no box"]
