"""What a hurried reader would take for a result: other images, training images, a set that was not asked."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cuewise import UserError, audit, compare, embed, inspect, pretrain, probe, transfer
from cuewise.audits.corruption import summary
from cuewise.encoders import load_encoder
from cuewise.encoders.load import as_torch_device
from tests.audits.small_models import ENCODER, class_map, classifier, photos
from tests.probes.test_published import MODEL, paint, tree

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {"size": 16, "workers": 0}


def test_audits_of_other_images_are_not_subtracted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same names in another folder: only the pixels tell them apart."""
    a, b = photos(tmp_path / "a" / "photos"), photos(tmp_path / "b" / "photos", seed=9)
    for place, data in (("one", a), ("two", b)):
        audit(ENCODER, out=tmp_path / place, train=str(data), only="accuracy", name=place, **SMALL)
    capsys.readouterr()
    compare(tmp_path / "one", tmp_path / "two", out=tmp_path / "both")
    line = "two: training images differ, so that no score can be compared with one"
    assert capsys.readouterr().err == f"WARNING: {line}\n"
    text = (tmp_path / "both" / "report.md").read_text()
    assert "nothing can be compared" in text
    assert line.removeprefix("two: ") in (tmp_path / "both" / "report.html").read_text()
    compare(tmp_path / "one", tmp_path / "one" / ".." / "one", out=tmp_path / "same", name=["a", "b"])
    assert "differ" not in capsys.readouterr().err


def test_a_class_map_with_a_training_set_is_of_the_probe(tmp_path: Path) -> None:
    train, test = photos(tmp_path / "train"), photos(tmp_path / "test", 4, classes=("cold", "hot"), seed=3)
    mapped = class_map(tmp_path, {"cold": ["cat"], "hot": ["ant"]})
    options: dict[str, Any] = {
        "train": str(train),
        "test": str(test),
        "class_map": mapped,
        "only": "accuracy",
    }
    found = audit(classifier(tmp_path), out=tmp_path / "out", **options, **SMALL)
    assert found["scores"]
    assert all(not s["name"].startswith("head/") for s in found["scores"])


def test_embedded_test_images_that_were_trained_on_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="all of its 16 images are in --train"):
        audit(
            ENCODER, train="shapes?n=48&size=16", test="shapes?n=16&size=16", only="accuracy",
            out=tmp_path / "out", **SMALL,
        )  # fmt: skip


@pytest.fixture
def doubled(tmp_path: Path) -> Path:
    """Noise whose labels mean nothing, three copies of each image."""
    rng = np.random.default_rng(0)
    for i in range(24):
        (tmp_path / "doubled" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        for k in "xyz":
            image.save(tmp_path / "doubled" / "ab"[i % 2] / f"{i}{k}.png")
    return tmp_path / "doubled"


def test_copies_on_both_sides_of_a_held_out_part(doubled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = probe("knn", ENCODER, train=str(doubled), k=1, size=16)
    assert found["overlap"][0]["test"] == "held-out"
    assert found["overlap"][0]["shared"] > 0
    assert "WARNING: held out of --train" in capsys.readouterr().err


def test_transfer_says_which_tests_were_trained_on(tmp_path: Path) -> None:
    train, test = photos(tmp_path / "train", 5), photos(tmp_path / "test", 3, seed=5)
    shutil.copy(train / "ant" / "ant0.jpg", test / "ant" / "ant9.jpg")
    (tmp_path / "suite.yaml").write_text(
        f"- {{name: t, probe: knn, k: 1, train: {train}, test: {test}, size: 16}}\n"
    )
    for _ in range(2):  # the second time the cell is read
        transfer(ENCODER, suite=tmp_path / "suite.yaml", out=tmp_path / "out")
        (row,) = json.loads((tmp_path / "out" / "transfer.json").read_text())["rows"]
        assert row["overlap"][0]["shared"] == 1
        assert "1 of 10 images of" in (tmp_path / "out" / "report.html").read_text()


def test_the_untrained_twin_looks_at_the_same_size(tmp_path: Path) -> None:
    from cuewise import pretrain

    pretrain(
        "shapes?n=16&size=24",
        out=tmp_path / "run",
        model=ENCODER,
        size=24,
        batch_size=8,
        steps=1,
        workers="0",
    )
    assert load_encoder(str(tmp_path / "run")).card.size == 24
    found = probe("knn", str(tmp_path / "run"), train="shapes?n=48&size=24", k=1, baseline="random")
    for scores in (found["scores"], found["baseline"]["scores"]):
        assert all("/center24/" in s["protocol"] for s in scores)


def test_corrupted_sets(tmp_path: Path) -> None:
    train, test = paint(tmp_path / "train", 0), paint(tmp_path / "test", 1)
    one, two = (tree(tmp_path / n, test, True, {"fog": (1,)}) for n in ("c1", "c2"))
    options: dict[str, Any] = {"only": "corruption", "size": 16}
    with pytest.raises(UserError, match="only one corrupted set can be given; c1 is already one"):
        audit(MODEL, train=str(train), test=[str(one), str(two)], out=tmp_path / "a", **options)
    own = classifier(tmp_path, 18)
    names = {name.name: [k] for k, name in enumerate(sorted(train.iterdir()))}
    found = audit(
        own, test=[f"corrupted={one}"], class_map=class_map(tmp_path, names), out=tmp_path / "b", **options
    )
    said = {s["name"]: s["protocol"] for s in found["scores"]}
    assert said["corruption/accuracy"].endswith("mean of 15 × 5 severities, of which 1 of 75 parts are there")
    assert "1 of 15 parts" in said["corruption/severity_1/accuracy"]
    mapped = class_map(tmp_path, {name: [name] for name in names})
    audit(MODEL, train=str(train), test=[f"corrupted={one}"], class_map=mapped, out=tmp_path / "c", **options)


def test_a_whole_cube_is_called_whole() -> None:
    for score in summary(np.ones((3, 19, 5)), "p"):
        assert "parts" not in score.protocol


def test_the_command_repeats_the_audit(tmp_path: Path) -> None:
    spec = "shapes?n=48&size=16"
    audit(
        ENCODER,
        train=spec,
        test="shapes?n=16&size=16&part=test",
        only="accuracy",
        out=tmp_path / "a b",
        seed=3,
        **SMALL,
    )
    words = shlex.split(json.loads((tmp_path / "a b" / "audit.json").read_text())["command"])
    assert words[:3] == ["cuewise", "audit", ENCODER]
    given = dict(zip(words[3::2], words[4::2]))
    assert given["--out"] == str(tmp_path / "a b")
    assert (given["--size"], given["--seed"], given["--train"]) == ("16", "3", spec)


def test_trials_that_cannot_differ_have_no_interval(tmp_path: Path) -> None:
    train, test = photos(tmp_path / "train", 3), photos(tmp_path / "test", 2, seed=4)
    found = probe("fewshot", ENCODER, train=str(train), test=str(test), shots=[3], size=16)
    assert all(s["low"] is None for s in found["scores"])


def test_one_line_errors(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos", 3)
    calls: list[Any] = [
        lambda: audit(ENCODER, out=tmp_path / "a", workers="abc"),
        lambda: inspect(str(data), out=tmp_path / "i", workers="abc"),
        lambda: embed(ENCODER, str(data), out=tmp_path / "e.npz", workers="abc"),
    ]
    for call in calls:
        with pytest.raises(UserError, match="--workers abc"):
            call()
    with pytest.raises(UserError, match="--device foo"):
        as_torch_device("foo")


def test_a_set_of_copies_is_not_judged(tmp_path: Path) -> None:
    for name, value in (("a", 0), ("b", 255)):
        (tmp_path / "solid" / name).mkdir(parents=True)
        for i in range(6):
            Image.new("RGB", (32, 32), (value,) * 3).save(tmp_path / "solid" / name / f"{i}.png")
    inspect(str(tmp_path / "solid"), out=tmp_path / "i", workers=0)
    (one,) = json.loads((tmp_path / "i" / "inspect.json").read_text())["sets"]
    assert "different images" in one["not_judged"]


def test_accuracy_below_guessing_is_no_result_but_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Class folders of the test set that are shifted by one."""
    train, test = photos(tmp_path / "train", 8), photos(tmp_path / "test", 8, seed=3)
    names = sorted(p.name for p in test.iterdir())
    for name in names:
        (test / name).rename(test / f"{name}-")
    for name, other in zip(names, [*names[1:], names[0]]):
        (test / f"{name}-").rename(test / other)
    sets = {"train": str(train), "test": str(test)}
    audit(ENCODER, out=tmp_path / "out", only="accuracy", **sets, **SMALL)
    (text,) = json.loads((tmp_path / "out" / "audit.json").read_text())["warnings"]
    assert "is worse than guessing" in text
    assert "name the classes alike?" in text
    assert text in capsys.readouterr().err
    assert "worse than guessing" in (tmp_path / "out" / "report.html").read_text()


def test_conflicts_that_nothing_could_check_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = photos(tmp_path / "train", 2), photos(tmp_path / "test", 2, seed=3)
    found = audit(ENCODER, out=tmp_path / "out", train=str(train), test=str(test), only="shape_bias", **SMALL)
    (score,) = (s for s in found["scores"] if s["name"] == "shape_bias")
    assert "home-made, validity not checked: too few other labelled images" in score["protocol"]
    assert (
        "WARNING: resnet-tiny?width=8: shape_bias: its conflict images were made" in capsys.readouterr().err
    )


def test_files_without_a_class_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = photos(tmp_path / "train", 5)
    for file in sorted((train / "ant").iterdir()):
        file.rename(train / file.name)
    (train / "preview.png").write_bytes((train / "ant0.jpg").read_bytes())
    (train / "ant").rmdir()
    line = f"WARNING: 6 files of {train} could not be used: ant0.jpg ("
    for call in (
        lambda: audit(ENCODER, out=tmp_path / "out", train=str(train), only="accuracy", **SMALL),
        lambda: probe("knn", ENCODER, train=str(train), size=16, k=1),
        lambda: pretrain(
            train,
            out=tmp_path / "run",
            method="supervised",
            model=ENCODER,
            size=16,
            batch_size=4,
            steps=1,
            workers=0,
        ),
    ):
        call()
        assert line in capsys.readouterr().err
    (train / "make.json").write_text("{}")  # then the picture is one that `make` has made of the set
    probe("knn", ENCODER, train=str(train), size=16, k=1, cache=False)
    assert f"WARNING: 5 files of {train} could not be used" in capsys.readouterr().err


def test_one_class_under_two_names_is_named_wherever_labels_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, test = photos(tmp_path / "train", 5), photos(tmp_path / "test", 5, seed=3)
    (test / "ant").rename(test / "Ant")
    found = probe("knn", ENCODER, train=str(train), test=str(test), size=16, k=1)
    (text,) = found["warnings"]
    assert "the probe knows 2 of 3 classes" in text
    assert "5 of 15 images left out; Ant is ant but for case or spaces: rename the folder" in text
    assert f"WARNING: {text}" in capsys.readouterr().err
    shutil.copytree(test / "Ant", train / "Ant")
    options: dict[str, Any] = {"model": ENCODER, "size": 16, "batch_size": 4, "steps": 1, "workers": 0}
    pretrain(train, out=tmp_path / "run", method="supervised", **options)
    line = f"{train}: Ant is ant but for case or spaces: rename the folder, or they are different classes"
    assert f"WARNING: {line}" in capsys.readouterr().err
    inspected = inspect(train, out=tmp_path / "inspected", only="size", workers=0)
    assert f"WARNING: {line}" in capsys.readouterr().err
    assert "Ant is ant but for case" in inspected["sets"][0]["doubt"]
    pretrain(train, out=tmp_path / "plain", method="simclr", **options)
    assert "but for case" not in capsys.readouterr().err  # no label is used


def test_a_probe_shows_its_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test = photos(tmp_path / "train", 5), photos(tmp_path / "test", 5, seed=3)
    run = tmp_path / "run"
    pretrain(train, out=run, method="simclr", model=ENCODER, size=16, batch_size=4, steps=2, workers=0)
    sets: dict[str, Any] = {"train": str(train), "test": str(test), "size": 16, "k": 1}
    capsys.readouterr()
    found = probe("knn", str(run), baseline="random", **sets)
    assert "RANDOM WEIGHTS" not in capsys.readouterr().err
    text = repr(found)
    assert f"baseline: top1/{test}" in text
    assert f"difference: top1/{test}" in text
    for model, baseline, reason in (
        (ENCODER, "random", "has random weights itself"),
        (str(run), str(run), "that is the model itself"),
    ):
        with pytest.raises(UserError, match=reason):
            probe("knn", model, baseline=baseline, **sets)
    probe("knn", str(run), out=tmp_path / "kept", **sets)
    written = (tmp_path / "kept" / "probe.json").stat().st_mtime_ns
    with pytest.raises(UserError, match="that is the model itself"):
        probe("knn", str(run), out=tmp_path / "kept", baseline=str(run), overwrite=True, **sets)
    kept = (tmp_path / "kept" / "probe.json").stat().st_mtime_ns
    assert kept == written  # nothing was replaced by a command that was refused


def test_an_audit_that_was_asked_for_by_name_is_missed_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = str(photos(tmp_path / "train", 5))
    audit(ENCODER, out=tmp_path / "out", train=train, only="accuracy,background", **SMALL)
    assert "WARNING: resnet-tiny?width=8: background left out: " in capsys.readouterr().err
