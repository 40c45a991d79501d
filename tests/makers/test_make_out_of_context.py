"""Objects in scenes of other images: what is pasted where, the table, and the audit that reads it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_files import rows
from PIL import Image as Pillow

import cuewise
from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.makers.out_of_context import covered, cut_out, paste

SIZE = 60


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Grey scenes with an annotated dog or cup each; red dogs and green fish on black, with palette masks."""
    root = tmp_path_factory.mktemp("sets")
    lines = ["image,label,xmin,ymin,xmax,ymax"]
    (root / "scenes").mkdir()
    for k in range(12):
        Pillow.fromarray(np.full((SIZE, SIZE, 3), 120 + k, np.uint8)).save(root / "scenes" / f"{k}.png")
        lines.append(f"{k}.png,{'dog' if k % 2 else 'cup'},2,2,20,20")
    (root / "scenes" / "boxes.csv").write_text("\n".join(lines) + "\n")
    for name, colour in (("dog", (255, 0, 0)), ("fish", (0, 255, 0))):
        for part in ("objects", "masks"):
            (root / part / name).mkdir(parents=True)
        for k in range(3):
            image, mask = np.zeros((40, 40, 3), np.uint8), np.full((40, 40), 2, np.uint8)
            image[10:30, 5:25], mask[10:30, 5:25] = colour, 1
            Pillow.fromarray(image).save(root / "objects" / name / f"{k}.jpg", quality=95)
            picture = Pillow.fromarray(mask, "P")
            picture.putpalette(list(range(255, -1, -1)) * 3)  # colours that are not the numbers
            picture.save(root / "masks" / name / f"{k}.png")
    return {
        "src": f"{root / 'scenes' / 'boxes.csv'}",
        "objects": str(root / "objects"),
        "masks": str(root / "masks"),
    }


def made(sets: dict[str, str], out: Path, *more: str) -> list[dict[str, str]]:
    settings = [f"objects={sets['objects']}", f"masks={sets['masks']}", *more]
    cuewise.make("out-of-context", sets["src"], str(out), set=settings, workers=0)
    return list(csv.DictReader((out / "objects.csv").open()))


@pytest.mark.slow
def test_objects_are_pasted_and_the_table_identifies_which_are_out(
    sets: dict[str, str], tmp_path: Path
) -> None:
    lines = made(sets, tmp_path / "out")
    by_row = {r["name"]: r for r in rows(tmp_path / "out")}
    seen = set()
    for line in (x for x in lines if x["pasted"] == "1"):
        image = np.asarray(Pillow.open(tmp_path / "out" / line["image"])).astype(int)
        x0, y0, x1, y1 = (int(line[c]) for c in ("xmin", "ymin", "xmax", "ymax"))
        inside = image[y0 + 2 : y1 - 2, x0 + 2 : x1 - 2].reshape(-1, 3).mean(0)
        assert (inside[0] > 220) == (line["label"] == "dog")
        assert (inside[1] > 220) == (line["label"] == "fish")
        rest = np.ones((SIZE, SIZE), bool)
        rest[max(0, y0 - 2) : y1 + 2, max(0, x0 - 2) : x1 + 2] = False
        assert np.ptp(image[rest]) == 0  # nothing else of the object's image
        own = [x["label"] for x in lines if x["image"] == line["image"] and x["pasted"] == "0"]
        assert line["context"] == (
            "in" if line["label"] in [n for n, *_ in by_row[line["image"]]["own"]] else "out"
        )
        assert 0.3 * SIZE - 1 <= max(x1 - x0, y1 - y0) <= 0.6 * SIZE + 1
        seen.add((line["label"], line["context"]))
        assert all(x["context"] == "in" for x in lines if x["pasted"] == "0")
        assert len(own) <= 1
    assert seen >= {("dog", "in"), ("fish", "out"), ("dog", "out")}
    assert sum(x["pasted"] == "1" for x in lines) == 12
    again = made(sets, tmp_path / "again")
    assert again == lines
    assert {x["context"] for x in made(sets, tmp_path / "strangers", "inside=0") if x["pasted"] == "1"} == {
        "out"
    }


@pytest.mark.slow
def test_the_audit_reads_it(sets: dict[str, str], tmp_path: Path) -> None:
    made(sets, tmp_path / "out")
    spec = f"{tmp_path / 'out' / 'objects.csv'}"
    data = open_data(spec)
    flags = [data.facts(i).boxes.flags["out_of_context"] for i in range(len(data))]  # type: ignore[union-attr]
    assert 0 < sum(int(f.sum()) for f in flags) < 12 + 12
    found: dict[str, Any] = cuewise.audit(
        "cuewise/resnet-tiny?width=8", test=[spec], only=["context"], out=str(tmp_path / "audit"), size=32
    )
    scores = {s["name"]: s["value"] for s in found["scores"]}
    assert any(n.startswith("context/auroc/") and 0 <= v <= 1 for n, v in scores.items())
    figures = json.loads((tmp_path / "audit" / "audit.json").read_text())["figures"]
    assert any(name.startswith("context/") for name in figures)


def test_an_object_is_cut_out_and_covers_as_little_as_it_can() -> None:
    image, mask = np.full((30, 40, 3), 9, np.uint8), np.zeros((30, 40), np.uint8)
    mask[5:15, 20:36] = 1
    cut, alpha = cut_out(image, mask, 1, "m")
    assert cut.shape[:2] == alpha.shape == (10, 16)
    taken = np.array([[0, 0, 50, 100], [50, 0, 100, 60]], np.float64)
    for seed in range(5):
        _, box = paste(
            np.zeros((100, 100, 3), np.uint8), cut, alpha, (0.3, 0.3), taken, np.random.default_rng(seed)
        )
        assert covered(taken, box).max() < 0.2
    np.testing.assert_allclose(covered(taken, [0, 0, 25, 100]), [0.5, 0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], "needs objects to paste"),
        (["objects={objects}"], "needs objects to paste"),
        (["objects={objects}", "masks={src}"], "no mask has the name of an object"),
        (["objects={objects}", "masks={masks}", "inside=2"], "inside 2 from 0 to 1"),
        (["objects={objects}", "masks={masks}", "value=7"], "fewer than 16 pixels have the value 7"),
    ],
)
def test_misuse_is_one_line(sets: dict[str, str], tmp_path: Path, settings: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        cuewise.make("out-of-context", sets["src"], str(tmp_path / "out"), workers=0,
                     set=[s.format(**sets) for s in settings])  # fmt: skip


def test_scenes_need_objects_of_their_own(sets: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="SRC has no annotated objects"):
        cuewise.make("out-of-context", sets["objects"], str(tmp_path / "out"),
                     set=[f"objects={sets['objects']}", f"masks={sets['masks']}"])  # fmt: skip
