"""Images that a score leaves out are named: unknown classes, files that cannot be decoded, cues that cannot be separated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, audit, probe
from cuewise.audits import plan, run
from cuewise.audits.coverage import stated_once
from cuewise.audits.measures import inseparable
from cuewise.data.class_names import alike, listed, same_but_for
from tests.audits.small_models import CLASSES, ENCODER, class_map, classifier, conflicts, photos

ALL = "accuracy,domains,confidence,saliency,color,texture,texture_classes,sketch,ranks,coarse_fine"


def document(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "audit.json").read_text())
    return content


def not_measured(out: Path) -> dict[str, str]:
    return dict(document(out)["tables"]["not_measured"]["rows"])


def test_names_that_differ_in_case_and_spaces() -> None:
    assert alike(["Horse", "house ", "dog", "ca t"], ["dog", "horse", "house", "cat"]) == [
        ("Horse", "horse"), ("house ", "house"), ("ca t", "cat"),
    ]  # fmt: skip
    assert alike(["Dog", "dog", "cat"], ["Dog", "dog", "cat"]) == [("Dog", "dog")]  # once
    assert same_but_for([("Horse", "horse")]) == "Horse is horse but for case or spaces: rename the folder"
    assert same_but_for([("Horse", "horse"), ("house ", "house")]) == (
        "Horse is horse and 'house ' is house but for case or spaces: rename the folders"
    )
    assert same_but_for([]) == ""
    assert listed([f"c{i}" for i in range(9)]) == "c0, c1, c2, c3, c4, c5, c6, c7, … (9 in all)"


def test_a_line_for_all_models_names_none() -> None:
    assert stated_once([("a", ["x", "y"]), ("b", ["x"])]) == ["x", "a: y"]


def test_a_classifier_that_knows_one_class_of_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said once on the terminal, at the top of the report, and in the protocol of every score on the set."""
    kinds = tmp_path / "kinds.json"
    kinds.write_text('{"ant": "insect"}')
    given = [str(photos(tmp_path / "set", 6)), f"sketch={photos(tmp_path / 'lines', 2, seed=1)}"]
    result = audit(
        classifier(tmp_path), out=str(tmp_path / "a"), test=given, class_map=class_map(tmp_path, ["ant", "x", "y"]),
        only=ALL, size=32, superclasses=str(kinds),
    )  # fmt: skip
    line = "set: the classifier knows 1 of 3 classes (ant); 12 of 18 images left out"
    said = capsys.readouterr().err
    assert said.count(f"WARNING: {line}") == 1
    assert said.index(line) < said.index("views/s")
    whole = document(tmp_path / "a")
    assert line in whole["warnings"]
    assert line in (tmp_path / "a" / "report.html").read_text()
    scores = {s["name"]: s for s in result["scores"]}
    for name in (
        "head/set/accuracy", "domains/set/accuracy", "confidence/set", "calibration_error/set", "saliency_area",
        "color/grey/accuracy", "texture/accuracy", "texture_classes/accuracy", "coarse/set",
    ):  # fmt: skip
        assert "1 of 3 classes; 12 images of other classes left out" in scores[name]["protocol"], name
    for name in ("sketch/accuracy", "ranks/lines/shape"):
        assert "1 of 3 classes" in scores[name]["protocol"], name
        assert "4 images of other classes left out" in scores[name]["protocol"], name


def test_the_sentence_of_two_models_says_on_how_few_images(tmp_path: Path) -> None:
    out, model = tmp_path / "a", classifier(tmp_path)
    mapping = class_map(tmp_path, ["ant", "x", "y"])
    images = str(photos(tmp_path / "set", 4))
    result = audit(model, model, out=str(out), test=images, class_map=mapping, only="accuracy", size=32)
    assert "n = 4, 8 images of other classes left out" in (out / "report.md").read_text().partition("##")[0]
    assert result["comparison"]["n"][0] == [4, 4]
    assert str(result).splitlines()[1].split()[-1] == "4"


def test_every_image_known_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = str(photos(tmp_path / "set", 8))
    result = audit(ENCODER, out=str(tmp_path / "a"), train=images, test=images, only="accuracy", size=32)
    assert "classes (" not in capsys.readouterr().err
    assert document(tmp_path / "a")["warnings"] == []
    assert all("other classes" not in s["protocol"] for s in result["scores"])


def test_names_but_for_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = photos(tmp_path / "train", 5)
    test = photos(tmp_path / "mixed", 3, classes=("ant", "Bee", "cat "), seed=1)
    result = audit(
        ENCODER,
        out=str(tmp_path / "a"),
        train=str(train),
        test=str(test),
        only="accuracy,confidence",
        size=32,
    )
    line = (
        "mixed: the probe knows 1 of 3 classes (ant); 6 of 9 images left out; "
        "Bee is bee and 'cat ' is cat but for case or spaces: rename the folders"
    )
    assert f"WARNING: {line}\n" in capsys.readouterr().err
    assert document(tmp_path / "a")["warnings"] == [line]
    scores = {s["name"]: s for s in result["scores"]}
    for name in ("linear/mixed", "knn/mixed", "confidence/mixed"):
        assert "; 1 of 3 classes; 6 images of other classes left out" in scores[name]["protocol"]
    assert scores["linear/mixed"]["n"] == 3


def test_training_classes_but_for_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = photos(tmp_path / "train", 5, classes=("ant", "Ant", "cat"))
    test = photos(tmp_path / "test", 3, seed=1, classes=("ant", "cat"))
    audit(ENCODER, out=str(tmp_path / "a"), train=str(train), test=str(test), only="accuracy", size=32)
    line = "the training images: Ant is ant but for case or spaces: rename the folder, or they are learnt as two classes"
    assert f"WARNING: {line}\n" in capsys.readouterr().err
    assert document(tmp_path / "a")["warnings"] == [line]


def test_no_shared_class_is_an_error_before_any_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lists in full, and the cause."""
    monkeypatch.setattr(plan, "run_passes", lambda *_: pytest.fail("the images were looked at"))
    train = str(photos(tmp_path / "train", 4))
    test = str(photos(tmp_path / "asked", 2, classes=("Ant", "Bee", "dog"), seed=1))
    with pytest.raises(UserError) as error:
        audit(ENCODER, out=str(tmp_path / "a"), train=train, test=test, only="accuracy,color", size=32)
    assert str(error.value) == (
        "asked shares no class with the probe, which knows ant, bee, cat; its classes are Ant, Bee, dog; "
        "Ant is ant and Bee is bee but for case or spaces: rename the folders"
    )
    mapping = class_map(tmp_path, ["ant", "bee", "cat"])
    model, mapping = classifier(tmp_path), class_map(tmp_path, ["ant", "bee", "cat"])
    with pytest.raises(
        UserError, match="it has ant, bee, cat, they have Ant, Bee, dog; Ant is ant and Bee is bee but"
    ):
        audit(model, out=str(tmp_path / "b"), test=test, class_map=mapping, only="accuracy", size=32)
    model, other = classifier(tmp_path, 1000), str(photos(tmp_path / "other", 2, classes=("Dog", "Xyz")))
    with pytest.raises(UserError, match="stand for Dog, Xyz is not known: Dog is dog but for case"):
        audit(model, out=str(tmp_path / "c"), test=other, only="accuracy", size=32)


@pytest.mark.parametrize("by", ["classifier", "probe"])
def test_a_set_of_unknown_classes_does_not_vanish(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [str(photos(tmp_path / "set", 4)), str(photos(tmp_path / "other", 3, classes=("hut", "yak")))]
    sets += [
        f"sketch={photos(tmp_path / 'lines', 3)}",
        f"sketch={photos(tmp_path / 'huts', 3, classes=('hut',))}",
    ]
    train = [str(photos(tmp_path / "train", 4, seed=1))] if by == "probe" else []
    mapping = None if train else class_map(tmp_path)
    only = ("accuracy", "domains", "confidence", "saliency", "sketch")
    audit(
        classifier(tmp_path), out=str(tmp_path / "a"), train=train, test=sets, class_map=mapping, only=",".join(only),
        size=32,
    )  # fmt: skip
    said, left = capsys.readouterr().err, not_measured(tmp_path / "a")
    for name in only[:-1]:
        assert f"{name}: other left out (shares no class with the {by}" in said
        assert left[f"{name}: other"].startswith(
            f"shares no class with the {by}, which knows ant, bee, cat; its"
        )
    assert left["sketch: huts"].startswith("shares no class")
    assert f"WARNING: other: the {by} knows 0 of 2 classes; 6 of 6 images left out\n" in said
    assert "accuracy: other" in (tmp_path / "a" / "report.html").read_text()
    assert "sketch/lines/accuracy" in {s["name"] for s in document(tmp_path / "a")["scores"]}


def broken_sets(root: Path) -> dict[str, Any]:
    """Twelve images to test and two of which half is missing, and one such among the training images; and no image."""
    test, train = photos(root / "set", 4), photos(root / "train", 4, seed=1)
    whole = (test / "ant" / "ant0.jpg").read_bytes()
    for k, file in enumerate(
        (test / "ant" / "a-bad.jpg", test / "cat" / "bad.jpg", train / "bee" / "bad.jpg")
    ):
        file.write_bytes(whole[: len(whole) // 2 + k])
    (test / "ant" / "note.jpg").write_text("no image")
    return {"train": str(train), "test": str(test)}


def test_files_that_cannot_be_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, named, and still known when an interrupted audit resumes from finished questions."""
    given: dict[str, Any] = {
        "out": str(tmp_path / "a"),
        "only": "accuracy",
        "size": 32,
        **broken_sets(tmp_path),
    }

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "describe", killed)
        with pytest.raises(Exception, match="interrupted"):
            audit(ENCODER, **given)
    said = capsys.readouterr().err
    assert (
        "WARNING: set: 2 of 14 images cannot be decoded and are left out (ant/a-bad.jpg, cat/bad.jpg)\n"
        in said
    )
    assert (
        "WARNING: the training images: 1 of 13 images cannot be decoded and are left out (bee/bad.jpg)\n"
        in said
    )
    audit(ENCODER, **given)
    data = document(tmp_path / "a")["data"]
    (found,) = (t for t in data["test"] if t["name"] == "set")
    assert [s["path"] for s in found["skipped"]] == ["ant/note.jpg", "ant/a-bad.jpg", "cat/bad.jpg"]
    assert all("decode" in s["why"] for s in found["skipped"][1:])
    assert found["count"] == 12
    assert data["train"]["count"] == 12
    assert [s["path"] for s in data["train"]["skipped"]] == ["bee/bad.jpg"]


def test_files_of_the_changed_images_alone(tmp_path: Path) -> None:
    """Where only a part of a set is looked at, what cannot be decoded of that part is named."""
    audit(ENCODER, out=str(tmp_path / "a"), only="color", size=32, limit=13, **broken_sets(tmp_path))
    (found,) = (t for t in document(tmp_path / "a")["data"]["test"] if t["name"] == "set")
    lost = [s["path"] for s in found["skipped"] if "decode" in s["why"]]
    assert lost
    assert set(lost) <= {"ant/a-bad.jpg", "cat/bad.jpg"}
    assert found["count"] == 14 - len(lost)


def test_nothing_is_left_out_where_no_answers_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = {
        "train": str(photos(tmp_path / "train", 2)),
        "test": str(photos(tmp_path / "set", 4, classes=("fox", "owl"), seed=1)),
    }
    audit(ENCODER, out=str(tmp_path / "a"), only="retrieval", size=32, **sets)
    assert document(tmp_path / "a")["warnings"] == []
    assert "left out" not in capsys.readouterr().err


def test_two_cues_that_cannot_be_separated() -> None:
    assert "2 shapes" in inseparable([("a", "b"), ("b", "a"), ("a", "b")])
    assert "3 shapes" in inseparable([("a", "b"), ("b", "c"), ("c", "a")])
    assert "three classes are needed" in inseparable([("a", "b"), ("b", "a")])
    assert "combine each shape with several textures" in inseparable([("a", "b"), ("b", "c"), ("c", "a")])
    assert inseparable([("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]) == ""
    assert inseparable([("a", "x"), ("a", "y"), ("b", "x")]) == ""


def test_conflicts_of_two_classes_compare_no_cues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two classes, images that share the shape are those that share the texture."""
    two = CLASSES[:2]
    train, test = photos(tmp_path / "train", 5, classes=two), photos(tmp_path / "set", 5, classes=two, seed=1)
    only = "retrieval,matching,ranks"
    result = audit(ENCODER, out=str(tmp_path / "a"), train=str(train), test=str(test), only=only, size=32)
    assert [s["name"] for s in result["scores"]] == ["retrieval/class"]
    left = not_measured(tmp_path / "a")
    assert set(left) == {"retrieval/shape", "retrieval/texture", "matching", "ranks"}
    assert "three classes are needed" in left["retrieval/shape"]
    assert "knows 2 labels" in left["ranks"]
    assert "retrieval/shape left out (" in capsys.readouterr().err


def test_conflicts_of_three_classes_do(tmp_path: Path) -> None:
    train, test = str(photos(tmp_path / "train", 5)), str(photos(tmp_path / "set", 5, seed=1))
    result = audit(
        ENCODER, out=str(tmp_path / "a"), train=train, test=test, only="retrieval,matching,ranks", size=32
    )
    names = {s["name"] for s in result["scores"]}
    assert {"retrieval/shape", "retrieval/texture", "ranks/conflict/shape", "ranks/conflict/texture"} <= names
    assert any(name.startswith("matching/") for name in names)


def test_stimuli_with_a_class_that_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both cues must be known: of nine stimuli of three classes four hold two classes alone."""
    train, stimuli = photos(tmp_path / "train", 5, classes=CLASSES[:2]), conflicts(tmp_path / "stimuli")
    audit(
        ENCODER,
        out=str(tmp_path / "a"),
        train=str(train),
        test=f"conflict={stimuli}",
        only="shape_bias",
        size=32,
    )
    line = "stimuli: the probe knows 2 of 3 classes (ant, bee); 5 of 9 images left out"
    assert f"WARNING: {line}\n" in capsys.readouterr().err
    assert document(tmp_path / "a")["warnings"] == [line]


def test_two_images_per_class_are_a_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A linear probe divides by deviations of few features: said by audit and probe, and on top of the report."""
    few, enough, test = (
        photos(tmp_path / "few", 2),
        photos(tmp_path / "many", 5),
        photos(tmp_path / "t", 2, seed=1),
    )
    line = "3 of 3 classes have fewer than 5 training images (ant, bee, cow; the fewest: 2)".replace(
        "ant, bee, cow", ", ".join(sorted(CLASSES))
    )
    asked: dict[str, Any] = {"test": [str(test)], "size": 32}
    audit(ENCODER, out=str(tmp_path / "a"), train=[str(few)], only="accuracy", **asked)
    assert capsys.readouterr().err.count(line) == 1
    assert any(line in w for w in document(tmp_path / "a")["warnings"])
    probe("linear", ENCODER, train=[str(few)], **asked)
    assert line in capsys.readouterr().err
    probe("linear", ENCODER, train=[str(enough)], **asked)
    audit(ENCODER, out=str(tmp_path / "b"), train=[str(enough)], only="accuracy", **asked)
    assert "training images (" not in capsys.readouterr().err
