"""`cuewise inspect` from a user's folder to the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cuewise
from cuewise.errors import UserError
from cuewise.inspection.clue import CLUES
from cuewise.inspection.copies import contradictions, copies_between, copies_within
from cuewise.inspection.gather import gather
from cuewise.inspection.judge import Judged
from cuewise.inspection.run import Inspected, inspect_sets
from cuewise.options import options_of
from cuewise.report.inspection import headline
from cuewise.scores import Score

pytestmark = pytest.mark.slow


def picture(seed: int, side: int = 40) -> Image.Image:
    """Something like a photograph: random, smooth, in colour."""
    cells = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return Image.fromarray(cells).resize((side, side), Image.Resampling.BICUBIC)


def folder_of(root: Path, images: dict[str, Image.Image], **how: object) -> Path:
    for name, image in images.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        image.save(root / name, **how)  # type: ignore[arg-type]
    return root


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two classes of 12 images of noise."""
    return folder_of(
        tmp_path / "two", {f"{c}/{i}.png": picture(100 * (c == "b") + i) for c in "ab" for i in range(12)}
    )


def inspected(*specs: str, **options: Any) -> list[Inspected]:
    """The sets, in this process, with what `inspect` declares for all that is not given."""
    declared = options_of(cuewise.inspect).items()
    usual = {name: o.default for name, o in declared if name not in ("out", "overwrite")}
    return inspect_sets(specs, **{**usual, "workers": 0, **options})


def told(spec: str, **options: object) -> dict[str, bool]:
    (found,) = inspected(spec, **options)
    return {name: clue.predicts for name, clue in found.clues.items()}


def test_finds_the_cue_of_the_embedded_sets() -> None:
    coloured = told("shapes:coloured?n=320&size=32", only=["color", "texture", "layout", "size"])
    assert coloured == {"color": True, "texture": False, "layout": False, "size": False}
    (aligned,) = inspected("shapes:aligned?n=480&size=32&palette=one", only=["texture", "size"])
    assert aligned.clues["texture"].predicts
    assert aligned.clues["texture"].accuracy.value > 0.5
    assert not aligned.clues["size"].predicts


def test_finds_nothing_in_noise(two: Path) -> None:
    assert not any(told(str(two)).values())


def test_finds_what_the_files_give_away(tmp_path: Path) -> None:
    root = tmp_path / "files"
    folder_of(root, {f"a/{i}.jpg": picture(i) for i in range(20)}, quality=95)
    folder_of(root, {f"b/{i}.jpg": picture(50 + i) for i in range(20)}, quality=60)
    found = told(str(root), only=["file", "color", "size"])
    assert found == {"file": True, "color": False, "size": False}
    sized = folder_of(tmp_path / "sized", {f"{c}/{i}.png": picture(i + 30 * k, 40 + 8 * k)
                                           for k, c in enumerate("ab") for i in range(15)})  # fmt: skip
    assert told(str(sized), only=["size"]) == {"size": True}


def test_finds_planted_copies(two: Path, tmp_path: Path) -> None:
    test = folder_of(tmp_path / "test", {f"a/{i}.png": picture(500 + i) for i in range(10)})
    (test / "a" / "leak.png").write_bytes((two / "b" / "3.png").read_bytes())
    picture(4).resize((64, 64), Image.Resampling.BICUBIC).save(test / "a" / "rescaled.jpg", quality=70)
    (two / "b" / "again.png").write_bytes((two / "a" / "7.png").read_bytes())  # another label
    first, second = inspected(str(test), str(two), only=["color"])
    shared = copies_between(first.found, second.found)
    assert [(first.image_name(i), second.image_name(j)) for i, j in shared.same] == [
        ("a/leak.png", "b/3.png")
    ]
    assert [(first.image_name(i), second.image_name(j)) for i, j in shared.near] == [
        ("a/rescaled.jpg", "a/4.png")
    ]
    within = copies_within(second.found)
    odd = [(second.image_name(i), second.image_name(j)) for i, j in contradictions(within, second.labels)]
    assert odd == [("b/again.png", "a/7.png")]
    assert not within.near
    assert not copies_within(first.found).same


def test_the_page_and_the_document(two: Path, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    folder_of(two, {f"{evil}/{i}.png": picture(900 + i) for i in range(6)})
    (two / "a" / "broken.png").write_bytes(b"no image")
    out = tmp_path / "out"
    found = cuewise.inspect(two, out=out, workers=0)
    document = json.loads((out / "inspect.json").read_text())
    assert document["sets"][0]["broken"]["files"][0]["path"].endswith("broken.png")
    assert document["sets"][0]["classes"] == {"a": 12, "b": 12, evil: 6}
    assert {s["name"] for s in found["scores"]} == {f"{c}/accuracy" for c in document["sets"][0]["clues"]}
    assert all(s["low"] <= s["value"] <= s["high"] for s in found["scores"])
    page = (out / "report.html").read_text()
    assert evil not in page
    assert "broken.png" in page
    with pytest.raises(UserError, match="not empty"):
        cuewise.inspect(two, out=out, workers=0)
    assert cuewise.inspect(two, out=out, only="size", workers=0, overwrite=True)["sets"][0][
        "clues"
    ].keys() == {"size"}


def test_too_little_to_judge_is_reported(tmp_path: Path) -> None:
    few = folder_of(tmp_path / "few", {f"{c}/{i}.png": picture(i) for c in "ab" for i in range(2)})
    flat = folder_of(tmp_path / "flat", {f"{i}.png": picture(i) for i in range(3)})
    out = cuewise.inspect(few, flat, out=tmp_path / "out", workers=0)
    assert "5 images or more" in out["sets"][0]["not_judged"]
    assert not out["sets"][0]["clues"]
    assert "no labels" in out["sets"][1]["not_judged"]
    assert out["shared"][0]["same"] == 4  # a and b have the same pictures


def test_parts_of_a_set_are_not_taken_for_classes_in_silence(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("train", "val", "masks"):
        folder_of(tmp_path / "set", {f"{part}/{i}.png": picture(i + 50 * len(part)) for i in range(6)})
    out = cuewise.inspect(tmp_path / "set", out=tmp_path / "out", only="size", workers=0)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "set: 18 images of 3 classes: masks, train, val"
    doubt = f"classes are masks, train, val: are these parts of a set? Did you mean {tmp_path}/set/train?"
    assert said[1] == f"WARNING: {tmp_path}/set: {doubt}"
    assert doubt in out["sets"][0]["doubt"]
    assert doubt in (tmp_path / "out" / "report.html").read_text()
    assert cuewise.inspect(two, out=tmp_path / "two-out", only="size", workers=0)["sets"][0]["doubt"] == ""
    assert "WARNING" not in capsys.readouterr().err


def test_the_terminal_names_broken_files_and_clues_that_are_left_out(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (two / "a" / "cut.png").write_bytes((two / "a" / "1.png").read_bytes()[:120])
    (two / "a" / "empty.png").write_bytes(b"")
    out = cuewise.inspect(two, out=tmp_path / "out", workers=0)
    said = capsys.readouterr().err
    assert "2 files of two could not be used: a/empty.png (empty file), a/cut.png (" in said
    assert "two: silhouette left out; it needs masks: give --masks" in said
    assert "two: position left out; it needs boxes" in said
    assert set(out["sets"][0]["lacking"]) == {"silhouette", "position"}
    assert all(s["guessing"] == 0.5 for s in out["scores"])
    assert "guessing 0.5000" in repr(out)


def test_a_named_clue_that_the_set_lacks_is_refused(two: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"--only silhouette,position: two lacks .*silhouette needs masks: give --masks.*; position",
    ):
        cuewise.inspect(two, out=tmp_path / "out", only="silhouette,position", workers=0)
    assert not (tmp_path / "out" / "inspect.json").exists()
    both = inspected(str(two), "shapes:scenes?n=20&size=32", only=["position"])
    assert [set(s.lacking) for s in both] == [{"position"}, set()]  # one of the sets has it


def test_what_one_set_or_one_clue_lacks_leaves_the_others(two: Path, tmp_path: Path) -> None:
    out = cuewise.inspect(
        [two, "shapes:scenes?n=20&size=32"], out=tmp_path / "sets", only="position", workers=0
    )
    assert [bool(s["clues"]) for s in out["sets"]] == [False, True]
    assert out["sets"][0]["not_judged"] == "it lacks what is looked at"
    assert (
        "two: no clue was judged (it lacks what is looked at)."
        in (tmp_path / "sets" / "report.html").read_text()
    )
    out = cuewise.inspect(two, out=tmp_path / "clues", only="color,silhouette", workers=0)
    assert list(out["sets"][0]["clues"]) == ["color"]


def test_what_is_not_shown_is_not_denied() -> None:
    """The reviewer's case: 60 images, an interval above guessing, and shuffled labels that reach it."""
    score = Score("texture/accuracy", 0.6333, 0.5068, 0.7438, 60, "")
    none = np.zeros(0, np.int64)
    unclear = Judged(score, 1 / 3, (0.33, 0.55), none, none.astype(np.float32))
    assert (unclear.predicts, unclear.unclear) == (False, True)
    shown = replace(unclear, shuffled=(0.33, 0.5))
    assert (shown.predicts, shown.unclear) == (True, False)
    nothing = replace(unclear, accuracy=replace(score, low=0.3))
    assert (nothing.predicts, nothing.unclear) == (False, False)

    def said(**clues: Judged) -> str:
        facts = {name: {"value": j.accuracy.value, "low": j.accuracy.low, "high": j.accuracy.high, "guessing": j.majority,
                        "shuffled_highest": j.shuffled[1], "predicts": j.predicts, "unclear": j.unclear, "shortcut": True}
                 for name, j in clues.items()}  # fmt: skip
        one = {"name": "few", "images": 62, "left_out": 2, "clues": facts, "not_judged": "", "doubt": "",
               "copies": {"under_two_labels": 0}}  # fmt: skip
        return headline({"sets": [one], "shared": []}).replace("\N{NO-BREAK SPACE}", " ")

    text = said(texture=unclear, color=nothing)
    assert text.startswith("few: not shown with 60 images: ")
    assert (
        "alone reaches 63.3 % (95 % interval 50.7–74.4 %) and guessing 33.3 %, but shuffled labels reached 55.0 %"
        in text
    )
    assert "no single cue" not in text
    assert (
        "no single cue was shown to predict the class better than guessing (33.3 %) with 60 images; tried: color."
        in said(color=nothing)
    )
    assert said(color=shown, texture=unclear).endswith("Not shown with 60 images: texture.")


def test_masks_of_a_user(two: Path, tmp_path: Path) -> None:
    """The object of one class is high, that of the other wide; the images are noise."""
    for k, c in enumerate("ab"):
        for i in range(12):
            mask = np.full((40, 40), 2, np.uint8)
            mask[(slice(4, 34), slice(15 + i % 3, 22))[:: 1 - 2 * k]] = 1
            (tmp_path / "masks" / c).mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask).save(tmp_path / "masks" / c / f"{i}.png")
    options = {"only": ["silhouette", "color"], "masks": str(tmp_path / "masks")}
    assert told(str(two), **options, mask_value=1) == {"silhouette": True, "color": False}
    with pytest.raises(
        UserError, match="values 1, 2 and no white; say which one is the object: --mask-value N"
    ):
        told(str(two), **options)
    with pytest.raises(UserError, match="none of its 24 files is named as an image of"):
        told("shapes?n=20&size=32", **options, mask_value=1)
    with pytest.raises(UserError, match="--mask-value belongs to --masks"):
        told(str(two), mask_value=1)


def test_errors(two: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no DATA"):
        cuewise.inspect(out=tmp_path / "o")
    with pytest.raises(UserError, match="twice"):
        cuewise.inspect(two, two, out=tmp_path / "o")
    with pytest.raises(UserError, match=r"no clue 'colour'.*color"):
        cuewise.inspect(two, out=tmp_path / "o", only="colour")
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_the_same_for_any_number_of_workers(two: Path) -> None:
    from cuewise.data import open_data

    data, clues = open_data(str(two)), [clue() for clue in CLUES.all().values()]
    one, other = (gather(data, clues, "two", w) for w in (0, 2))
    assert one.digests == other.digests
    assert one.clues.keys() == other.clues.keys()
    assert all(np.array_equal(one.clues[k], other.clues[k]) for k in one.clues)


def test_sets_with_boxes_are_labelled_by_their_largest_object() -> None:
    (found,) = inspected("shapes:scenes?n=60&size=32", only=["position"])
    assert not found.by_objects
    assert "position" in found.clues
