"""Folders that are parts of a set and no classes, and files that cannot be used: what is said of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cuewise import UserError, embed, make, pretrain, probe
from cuewise.audits.sets import forget, open_sets
from cuewise.data import open_data
from cuewise.data.parts import doubt_parts, parts_among
from cuewise.data.unusable import NAMED, unusable

MODEL = "cuewise/resnet-tiny?width=8"


@pytest.fixture
def parts(folder: Path, tmp_path: Path) -> Path:
    """train/ val/ masks/ with class folders in them, as many sets are packed."""
    for part in ("train", "val", "masks"):
        shutil.copytree(folder / "ant", tmp_path / "set" / part / "ant")
    return tmp_path / "set"


def test_one_class_called_like_a_part_is_a_class() -> None:
    assert parts_among(["bus", "car", "train"]) == []
    assert parts_among(["bus", "test", "train"]) == ["test", "train"]
    assert parts_among(["Images"]) == ["Images"]
    assert parts_among(["cat", "dog"]) == parts_among([]) == []


def test_the_part_that_was_meant_is_named(parts: Path, folder: Path) -> None:
    said = doubt_parts(open_data(str(parts)), [str(parts)])
    assert "classes are masks, train, val: are these parts of a set?" in said
    assert said.endswith(f"Did you mean {parts}/train?")
    assert doubt_parts(open_data(f"{parts}?n=40"), [f"{parts}?n=40"]).endswith(f"{parts}/train?n=40?")
    assert doubt_parts(open_data(str(folder)), [str(folder)]) == ""
    joined = doubt_parts(open_data([str(folder), str(parts)]), [str(folder), str(parts)])
    assert joined.endswith("classes are masks, train, val: are these parts of a set?")


def test_verbs_that_use_labels_warn(
    parts: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = f"WARNING: {parts}: classes are masks, train, val"
    probe("knn", MODEL, train=[str(parts)], k=1, size=16)
    assert warning in capsys.readouterr().err
    forget()
    open_sets([str(folder)], [f"sketch={parts}"], 16)
    assert capsys.readouterr().err.count(warning) == 1
    open_sets([str(parts)], [str(folder)], 16)
    assert capsys.readouterr().err.count(warning) == 1
    options = {"model": MODEL, "size": 16, "batch_size": 8, "steps": 1, "workers": 0}
    pretrain(str(folder), out=str(tmp_path / "run"), val=[str(parts)], method="simclr", **options)
    assert warning in capsys.readouterr().err
    pretrain(str(parts), out=str(tmp_path / "plain"), method="simclr", **options)
    assert warning not in capsys.readouterr().err  # no label is used
    pretrain(str(parts), out=str(tmp_path / "classes"), method="supervised", **options)
    assert warning in capsys.readouterr().err


def test_embed_names_what_it_could_not_use(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = shutil.copytree(folder, tmp_path / "photos")
    (source / "ant" / "cut.jpg").write_bytes((source / "ant" / "ant 1.jpg").read_bytes()[:200])
    (source / "bee" / "empty.jpg").write_bytes(b"")
    found = embed(MODEL, source, out=tmp_path / "f.npz", size=16, workers=0)
    assert {s["path"] for s in found["skipped"]} == {"ant/cut.jpg", "bee/empty.jpg"}
    assert "2 files could not be used: bee/empty.jpg (empty file), ant/cut.jpg (" in capsys.readouterr().err


def test_one_line_on_files_that_cannot_be_used() -> None:
    files = [{"path": f"{i}\n.jpg", "why": "empty file"} for i in range(NAMED + 2)]
    assert unusable([]) == ""
    assert unusable(files[:1]) == "1 file could not be used: 0\\n.jpg (empty file)"
    said = unusable(files, "photos")
    assert said.startswith(f"{NAMED + 2} files of photos could not be used: 0\\n.jpg (empty file), 1")
    assert said.endswith(", and 2 more")
    assert said.count("empty file") == NAMED


def test_an_option_of_data_that_does_not_exist(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"did you mean seed=….* classes, objects, per_class, longtail, n, seed, set"
    ):
        make("patch", f"{folder}?n=5&sed=3", tmp_path / "out")
    with pytest.raises(UserError, match=r"'zzz' is no option of DATA \(it takes: classes"):
        open_data(f"{folder}?zzz")
