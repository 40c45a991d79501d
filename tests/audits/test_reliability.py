"""Whatever comes in: a clear error, or a counted skip."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cuewise import UserError, audit
from cuewise.audits.changed import mean_share, share
from cuewise.audits.decisions import cues_in
from cuewise.audits.sets import chosen, short_names
from cuewise.cli import main
from cuewise.data import open_data
from cuewise.probes.mce import ALEXNET, mce
from tests.audits.small_models import ENCODER, class_map, classifier, conflicts, flat, photos

ODD = "tests.audits.small_models"


def scores_of(out: Path) -> dict[str, Any]:
    return {s["name"]: s for s in json.loads((out / "audit.json").read_text())["scores"]}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(photos(tmp_path_factory.mktemp("sets") / "set", 3))


@pytest.mark.parametrize("form", ["gives_tuple", "gives_dict", "gives_colours"])
def test_a_model_may_return_a_tuple_or_a_dict(form: str, images: str, tmp_path: Path) -> None:
    """Mean colours tell these classes apart, so the answers can be checked."""
    mapping = class_map(tmp_path)
    audit(
        f"{ODD}:{form}", out=str(tmp_path / "a"), test=[images], class_map=mapping, only="accuracy", size=32
    )
    assert scores_of(tmp_path / "a")["head/set/accuracy"]["value"] == 1.0


def test_nan_everywhere_is_reported(images: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="NaN or infinity for every image"):
        audit(f"{ODD}:gives_nan", out=str(tmp_path / "a"), test=[images], class_map=class_map(tmp_path), size=32,
              only="accuracy,color,domains")  # fmt: skip
    with pytest.raises(UserError, match="features hold NaN"):
        audit(
            f"{ODD}:gives_nan",
            out=str(tmp_path / "b"),
            train=[images],
            test=[images],
            size=32,
            only="accuracy",
        )


def test_nan_somewhere_is_left_out_and_counted(images: str, tmp_path: Path) -> None:
    audit(f"{ODD}:gives_some_nan", out=str(tmp_path / "a"), test=[images], class_map=class_map(tmp_path), size=32,
          only="accuracy,color,domains")  # fmt: skip
    found = scores_of(tmp_path / "a")
    for name in ("head/set/accuracy", "color/clean/accuracy", "domains/set/accuracy"):
        assert 0 < found[name]["n"] < 9
        assert f"{9 - found[name]['n']} images without a finite answer left out" in found[name]["protocol"]


@pytest.mark.slow
def test_one_image_a_class_and_an_empty_class(tmp_path: Path) -> None:
    train, test = photos(tmp_path / "train", 1), photos(tmp_path / "set", 1, seed=3)
    (train / "emptiness").mkdir()
    result = audit(ENCODER, out=str(tmp_path / "a"), train=[str(train)], test=[str(test)], size=32,
                   only="accuracy,shape_bias,corruption,domains,rotation")  # fmt: skip
    for s in result["scores"]:
        assert s["value"] is None or s["low"] <= s["value"] <= s["high"]
    assert scores_of(tmp_path / "a")["corruption/accuracy"]["n"] == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": ["GARBAGE"]}, "none of the"),
        ({"test": ["FOREIGN"]}, "shares no class"),
        ({"test": ["missing"]}, "^missing: there is no such folder"),
        ({"limit": -1}, "--limit -1"),
        ({"answers": "guess"}, "--answers guess"),
        ({"engine": "spark"}, "--engine spark"),
        ({"address": "x:1"}, "--engine ray"),
        ({"human": "nobody.csv", "only": "shape_bias"}, "--human nobody.csv"),
        ({"human": "nobody.csv"}, "--human belongs to the audit shape_bias: add it to --only"),
        ({"class_map": "nothing.json"}, "no class map"),
        ({"reference_errors": "nothing.json", "only": "corruption"}, "--reference-errors nothing.json"),
        ({"model": "timm/test_efficientnet:nothing.pth"}, "no weights at"),
        ({"model": "timm/test_vit", "size": 37}, "37"),
    ],
)
def test_errors_say_what_to_fix(change: dict[str, Any], message: str, images: str, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage" / "ant"
    garbage.mkdir(parents=True)
    (garbage / "x.jpg").write_bytes(b"not an image")
    places = {
        "GARBAGE": str(garbage.parent),
        "FOREIGN": str(photos(tmp_path / "foreign", 1, classes=("emu", "fox"))),
    }
    options: dict[str, Any] = {"train": [images], "test": [images], "only": "accuracy", "size": 32, **change}
    options["test"] = [places.get(t, t) for t in options["test"]]
    with pytest.raises(UserError, match=message):
        audit(options.pop("model", ENCODER), out=str(tmp_path / "a"), **options)


def test_names_that_do_not_parse_are_counted(images: str, tmp_path: Path) -> None:
    stimuli = conflicts(tmp_path / "conflicts")
    Image.new("RGB", (40, 40)).save(stimuli / "ant" / "what is this.png")
    audit(ENCODER, out=str(tmp_path / "a"), train=[images], test=[str(stimuli)], only="shape_bias", size=32)
    found = scores_of(tmp_path / "a")["shape_accuracy"]
    assert found["n"] == 6
    assert "1 images whose name does not give the cues" in found["protocol"]


@pytest.mark.slow
def test_stimuli_in_a_flat_folder(images: str, tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    for file in conflicts(tmp_path / "conflicts").rglob("*.png"):
        file.rename(tmp_path / "flat" / file.name)
    options: dict[str, Any] = {"test": [str(tmp_path / "flat")], "only": "shape_bias", "size": 32}
    audit(classifier(tmp_path), out=str(tmp_path / "a"), class_map=class_map(tmp_path), **options)
    assert scores_of(tmp_path / "a")["shape_accuracy"]["n"] == 6
    audit(ENCODER, out=str(tmp_path / "b"), train=[images], **options)
    assert scores_of(tmp_path / "b")["shape_accuracy"]["n"] == 6


def test_names_of_classes_with_hyphens_and_numbers() -> None:
    known = {"t-shirt", "mp3", "cat", "cat 2"}
    assert cues_in("t-shirt/t-shirt12-mp31.png", known) == ("t-shirt", "mp3")
    assert cues_in("mp3-cat7.jpg", known) == ("mp3", "cat")
    assert cues_in("cat3-cat 21.jpg", known) == ("cat", "cat 2")
    assert cues_in("cat3-dog1.jpg", known) is None


def test_conflicts_are_made_of_the_users_own_classes(images: str, tmp_path: Path) -> None:
    asked = str(photos(tmp_path / "asked", 3, seed=1))
    audit(
        ENCODER, out=str(tmp_path / "a"), train=[images], test=[asked], only="shape_bias", size=32, limit=12
    )
    found = scores_of(tmp_path / "a")["shape_accuracy"]
    assert found["n"] == 12
    assert "cue conflicts made of asked" in found["protocol"]
    notes = json.loads((tmp_path / "a" / "audit.json").read_text())["notes"]
    assert "home-made conflict images: " in notes["shape_bias"]
    assert "home-made, validity not checked: too few other labelled images" in found["protocol"]


def test_names_of_sets() -> None:
    names = short_names(
        ["/d/edges-160.zip", "/d/filled-silhouettes-160.zip", "pacs.zip/sketch", "x/stylised/val"]
    )
    assert names == ["edges-160", "filled-silhouettes-160", "sketch", "stylised/val"]
    assert short_names(["a/x", "b/x"]) == ["a/x", "b/x"]


def test_given_sets_are_used_as_they_are(images: str, tmp_path: Path) -> None:
    sketches, asked = photos(tmp_path / "lines", 2, seed=5), str(photos(tmp_path / "asked", 2, seed=1))
    audit(
        ENCODER,
        out=str(tmp_path / "a"),
        train=[images],
        test=[asked, f"sketch={sketches}"],
        only="sketch,color",
        size=32,
    )
    found = scores_of(tmp_path / "a")
    assert found["sketch/accuracy"]["n"] == 6
    assert "; lines, 3 of 3 classes" in found["sketch/accuracy"]["protocol"]
    assert "of asked" in found["color/grey/accuracy"]["protocol"]


def test_without_labels_and_with_nothing_else_asked(tmp_path: Path) -> None:
    bare = str(flat(tmp_path / "flat"))
    with pytest.raises(UserError, match=r"no labelled images to fit a probe on: give --train"):
        audit(ENCODER, out=str(tmp_path / "a"), train=[bare], test=[bare], only="accuracy", size=32)
    own = classifier(tmp_path)
    with pytest.raises(UserError, match="cue-conflict"):
        audit(own, out=str(tmp_path / "b"), test=[bare], only="shape_bias", size=32)


def test_the_limit_takes_classes_in_turn(images: str) -> None:
    data = open_data(images)
    rows = chosen(data, np.ones(len(data), bool), 5, 0)
    assert len(rows) == 5
    assert sorted(np.bincount(data.labels[rows]).tolist()) == [1, 2, 2]
    known = np.asarray(data.labels != 1)
    assert set(data.labels[chosen(data, known, 0, 0)]) == {0, 2}


def test_mce_by_name_and_only_with_all_names() -> None:
    names = list(ALEXNET)
    right = np.zeros((4, 15, 5))
    right[:, names.index("fog")] = 1  # no error under fog, all wrong elsewhere
    wanted = 100 * np.mean([0 if n == "fog" else 1 / ALEXNET[n] for n in names])
    assert mce(right, names, ALEXNET, "p").value == pytest.approx(wanted)
    turned = dict(reversed(ALEXNET.items()))
    assert mce(right, names, turned, "p").value == pytest.approx(wanted)
    assert mce(1 - np.zeros((2, 15, 5)), names, ALEXNET, "p").value == 0
    with pytest.raises(UserError, match="has no fog"):
        mce(right, names, {n: 0.5 for n in names if n != "fog"}, "p")
    with pytest.raises(UserError, match="not an error"):
        mce(right, names, {**ALEXNET, "fog": 0.0}, "p")


@pytest.mark.slow
def test_mce_needs_a_reference_of_its_own(images: str, tmp_path: Path) -> None:
    """AlexNet's errors hold for 1000 classes at 224 pixels: not here."""
    options: dict[str, Any] = {
        "train": [images],
        "test": [images],
        "only": "corruption",
        "size": 32,
        "limit": 3,
    }
    audit(ENCODER, out=str(tmp_path / "a"), **options)
    assert "corruption/mce" not in scores_of(tmp_path / "a")
    (tmp_path / "errors.json").write_text(json.dumps(dict.fromkeys(ALEXNET, 0.5)))
    audit(ENCODER, out=str(tmp_path / "b"), reference_errors=str(tmp_path / "errors.json"), **options)
    found = scores_of(tmp_path / "b")
    assert found["corruption/mce"]["value"] == pytest.approx(
        200 * (1 - found["corruption/accuracy"]["value"])
    )
    families = [found[f"corruption/{f}/accuracy"]["value"] for f in ("noise", "blur", "weather", "digital")]
    assert found["corruption/accuracy"]["value"] == pytest.approx(np.dot(families, [3, 4, 4, 4]) / 15)


def alexnet_like() -> dict[str, list[float]]:
    """Errors by severity whose means are those of AlexNet, in another order than ours."""
    return {
        name: [v * f for f in (0.9, 0.95, 1.0, 1.05, 1.1)] for name, v in reversed(ALEXNET.items()) if v < 0.9
    } | {name: [v] * 5 for name, v in ALEXNET.items() if v >= 0.9}


@pytest.mark.slow
def test_mce_from_the_shell_with_a_table_of_all_severities(images: str, tmp_path: Path) -> None:
    """mCE = 100 · mean over the 15 of Σ_s E / Σ_s E_reference, worked out again from the table of accuracies."""
    table = alexnet_like()
    (tmp_path / "errors.json").write_text(
        json.dumps({**table, "saturate": 0.5})
    )  # an extra one does not count
    words = [
        "audit",
        ENCODER,
        "--out",
        str(tmp_path / "a"),
        "--train",
        images,
        "--test",
        images,
        "--size",
        "32",
    ]
    words += ["--only", "corruption", "--limit", "3", "--reference-errors", str(tmp_path / "errors.json")]
    assert main(words) == 0
    found, document = scores_of(tmp_path / "a"), json.loads((tmp_path / "a" / "audit.json").read_text())
    rows = {r[0].replace(" ", "_"): r[2:7] for r in document["tables"]["corruption"]["rows"]}
    assert len(rows) == 19
    ratios = [sum(1 - right for right in rows[name]) / sum(errors) for name, errors in table.items()]
    assert len(ratios) == 15
    assert found["corruption/mce"]["value"] == pytest.approx(100 * np.mean(ratios))
    assert "reference errors as given" in found["corruption/mce"]["protocol"]
    assert "--reference-errors" in document["command"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fog": None}, "it has no fog; mCE needs each of: gaussian_noise"),
        ({"fog": None, "Fog": 0.8}, "no corruption is called Fog; mCE needs each of: .* fog,"),
        ({"fog": [0.6, 0.7, 0.8]}, "fog has 3 severities, not 5"),
        ({"fog": [0.7]}, "fog has 1 severities, not 5"),
        ({"fog": 81.9}, r"fog is 81.9, not an error between 0 and 1"),
        ({"fog": 0}, "fog is 0, not an error"),
        ({"fog": [0.1, 0.2, 0.3, 0.4, "x"]}, "not an error between 0 and 1"),
    ],
)
def test_reference_errors_that_mce_cannot_stand_on(
    change: dict[str, Any],
    why: str,
    images: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Refused before any work is done, with the reason, in one line."""
    table = {k: v for k, v in {**alexnet_like(), **change}.items() if v is not None}
    (tmp_path / "errors.json").write_text(json.dumps(table))
    words = ["audit", ENCODER, "--out", str(tmp_path / "a"), "--train", images, "--test", images]
    assert main([*words, "--reference-errors", str(tmp_path / "errors.json")]) == 2
    said = capfd.readouterr().err
    assert re.search(why, said)
    assert "Traceback" not in said
    assert not (tmp_path / "a" / "audit.json").exists()


def test_means_over_copies_have_intervals_over_images() -> None:
    hits = np.array([[1.0, 1, 1], [0, 0, 0], [1, 1, 0], [np.nan, 1, 1]])
    found = mean_share("x", hits, "p")
    assert (found.n, found.value) == (3, pytest.approx(5 / 9))
    assert "1 images without a finite answer" in found.protocol
    sure = mean_share("x", np.ones((20, 5)), "p")
    assert sure.value == 1.0
    assert sure.low < 0.9  # twenty images are not certainty
    assert math.isnan(share("x", np.zeros(0), "p").value)
