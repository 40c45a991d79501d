"""Which role a test set has, which images are held out, which training images are found among the test images."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, audit
from cuewise.audits.change import CLEAN
from cuewise.audits.one_cue import one_cue_audit
from cuewise.audits.sets import open_sets, overlaps, split_role
from tests.audits.small_models import ENCODER, conflicts, photos

ONLY: dict[str, Any] = {"size": 32, "workers": "0"}


def test_a_role_is_what_the_user_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Photographs of fabrics are no texture set because of their name, and lines are one of sketches whatever theirs."""
    train = str(photos(tmp_path / "train", 4))
    fabrics = str(photos(tmp_path / "texture-fabrics", 2, seed=1))
    lines = str(photos(tmp_path / "lines", 2, seed=2))
    audit(ENCODER, out=str(tmp_path / "a"), train=[train], test=[fabrics, f"sketch={lines}"], only="sketch,texture",
          **ONLY)  # fmt: skip
    protocols = {
        s["name"]: s["protocol"] for s in json.loads((tmp_path / "a/audit.json").read_text())["scores"]
    }
    assert "; lines, 3 of 3 classes" in protocols["sketch/accuracy"]
    assert "texture copies of 6 images of texture-fabrics" in protocols["texture/accuracy"]
    said = capsys.readouterr().err
    assert "test set texture-fabrics: plain (no role was given), 6 images, 3 classes" in said
    assert "test set lines: sketch (as given), 6 images, 3 classes" in said


def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match=r"no role 'skech'; did you mean sketch\? there are: plain, conflict"):
        split_role("skech=lines")
    assert split_role("shapes:sketch?n=80") == ("sketch", "shapes:sketch?n=80")
    assert split_role("DIR?set=val") == ("", "DIR?set=val")


def test_an_audit_from_outside_declares_its_role(tmp_path: Path) -> None:
    images = str(photos(tmp_path / "set", 2))
    words = {"question": "?", "title": "Dim", "meaning": "Dim.", "citation": ""}
    dim = one_cue_audit("dim", "in the dark", CLEAN, rank=99, card=99, embedded="dots", **words)
    with pytest.raises(UserError, match="no role 'dim'"):
        split_role(f"dim={images}")
    assert split_role(f"dim={images}", [dim]) == ("dim", images)
    assert split_role("shapes:dots", [dim]) == ("dim", "shapes:dots")
    found = open_sets([images], [f"dim={images}"], 32, asked=[dim])
    assert [name for name, _ in found.given["dim"]] == ["set"]
    assert found.plain == []


def test_conflicts_by_file_names_or_as_given(tmp_path: Path) -> None:
    train, stimuli = str(photos(tmp_path / "train", 2)), str(conflicts(tmp_path / "stimuli"))
    for spec in (stimuli, f"conflict={stimuli}"):
        found = open_sets([train], [spec], 32)
        assert found.conflict is not None
        assert found.test == []
    plain = open_sets([train], [f"plain={stimuli}"], 32)
    assert plain.conflict is None
    assert len(plain.test) == 1
    with pytest.raises(UserError, match="is the conflict set already"):
        open_sets([train], [f"conflict={stimuli}", f"conflict={train}"], 32)


@pytest.mark.parametrize("role", ["", "plain="])
def test_equal_train_and_test_sets_are_split(role: str, tmp_path: Path) -> None:
    """No probe is asked about an image that it was fitted on."""
    images = str(photos(tmp_path / "set", 5))
    found = open_sets([images], [f"{role}{images}"], 32)
    (_, test), train = found.test[0], found.train
    names = [{d.name(i) for i in range(len(d))} for d in (train, test)]
    assert (len(train), len(test)) == (12, 3)
    assert not names[0] & names[1]
    assert "plain, 3 of 15 images of --train, held out" in found.roles[-1][1]
    assert len(found.roles) == 1
    assert sorted(found.test[0][1].labels.tolist()) == [0, 1, 2]  # classes in turn
    again = open_sets([images], [], 32)
    assert {again.test[0][1].name(i) for i in range(3)} == names[1]


def test_shared_images_are_counted_and_a_copy_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = photos(tmp_path / "train", 5), photos(tmp_path / "asked", 3, seed=1)
    shutil.copy(train / "ant" / "ant1.jpg", test / "ant" / "other name.jpg")
    found = open_sets([str(train)], [str(test)], 32)
    assert {name: o.count for name, o in overlaps(found).items()} == {"asked": 1}
    audit(ENCODER, out=str(tmp_path / "a"), train=[str(train)], test=[str(test)], only="accuracy", **ONLY)
    said = "--test asked: 1 of 10 test images are training images (e.g. ant/other name.jpg = ant/ant1.jpg)"
    document = json.loads((tmp_path / "a/audit.json").read_text())
    assert document["warnings"] == [said]
    assert document["data"]["overlap"]["asked"]["shared"] == 1
    assert f"WARNING: {said}" in capsys.readouterr().err
    assert said in (tmp_path / "a/report.html").read_text()
    shutil.copytree(train, tmp_path / "copy")
    with pytest.raises(UserError, match="all of its 15 images are in --train as well"):
        audit(ENCODER, out=str(tmp_path / "b"), train=[str(train)], test=[str(tmp_path / "copy")], **ONLY)


def test_a_set_that_is_given_twice(folder: Path) -> None:
    """Its scores would stand under one name, one of them lost."""
    with pytest.raises(UserError, match="is given twice"):
        open_sets([str(folder)], [str(folder / "ant"), str(folder / "ant")], 32)
