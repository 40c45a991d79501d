"""A model's own classifier: mean probability by category, restriction to what it knows, ImageNet's categories."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cuewise import UserError, audit
from cuewise.audits.answerer import Answerer, numbers
from cuewise.audits.head import Head, imagenet16, map_for, read_class_map, wordnet
from cuewise.encoders.embed import evaluation_view
from cuewise.report.compare import differences
from cuewise.report.reading import read_audits
from tests.audits.small_models import CLASSES, ENCODER, class_map, classifier, conflicts, photos


def test_the_mean_decides_not_the_sum() -> None:
    """Three outputs of a little each must not beat one output that is surer than any of them."""
    logits = torch.log(torch.tensor([[0.3, 0.25, 0.25, 0.2]]))
    head = Head(nn.Identity(), {"dog": [1, 2, 3], "cat": [0]}, "test")
    p = head.predict_proba(logits.numpy())
    assert p == pytest.approx(np.array([[0.7 / 3, 0.3]]), abs=1e-6)
    assert Answerer(head, tuple(head.classes)).say(logits.numpy()).tolist() == [1]


def test_categories_without_outputs_are_left_out_not_nan() -> None:
    head = Head(nn.Identity(), {"cat": [0], "oven": [], "dog": [1]}, "test")
    answerer = Answerer(head, tuple(head.classes))
    assert answerer.classes == ("cat", "dog")
    assert np.isfinite(answerer.probabilities(np.array([[1.0, 2.0]], np.float32))).all()
    assert numbers(("dog", "oven"), answerer.classes).tolist() == [1, -1]


def test_answers_that_are_not_finite_are_no_answers() -> None:
    answerer = Answerer(Head(nn.Identity(), {"cat": [0], "dog": [1]}, "test"), ("cat", "dog"))
    rows = np.array([[0, 1], [np.nan, 1], [np.inf, 0], [2, 1]], np.float32)
    assert answerer.say(rows).tolist() == [1, -1, -1, 0]


def test_the_sixteen_categories() -> None:
    found = imagenet16()
    assert len(found) == 16
    assert sum(map(len, found.values())) == 207
    assert (found["airplane"], len(found["dog"]), len(found["bird"])) == ([404], 109, 49)
    assert map_for(["cat", "dog"], 1000, None) == (found, "mean over the outputs of each of 16 categories")
    assert map_for(["n02690373"], 1000, None) == (wordnet(), "ImageNet-1k")
    assert wordnet()["n02690373"] == [404]  # airliner
    assert map_for(["cat"], 10, None) is None  # ten outputs of who knows what
    with pytest.raises(UserError, match="names output 7"):
        map_for(["cat"], 3, {"cat": [7]})


@pytest.mark.parametrize("content", ["[", '{"cat": 3}', '{"cat": [0.5]}', "[1, 2]", "{}"])
def test_bad_class_maps_are_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(UserError, match="give"):
        read_class_map(tmp_path / "m.json")


def test_a_classifier_answers_for_itself(tmp_path: Path) -> None:
    """Two of three classes are known: images of the third, and conflicts with it, are left out and counted."""
    model, stimuli = classifier(tmp_path), conflicts(tmp_path / "conflicts")
    mapping = class_map(tmp_path, {"ant": [0], "bee": [1, 2]})
    result = audit(
        model, out=str(tmp_path / "a"), test=[str(photos(tmp_path / "set", 2)), str(stimuli)], class_map=mapping,
        only="accuracy,shape_bias,domains", size=32,
    )  # fmt: skip
    scores = {s["name"]: s for s in result["scores"]}
    assert scores["shape_accuracy"]["n"] == 2  # ant–bee and bee–ant; those with cats are not asked
    assert "5 images with a class the model does not know" in scores["shape_bias"]["protocol"]
    assert scores["domains/set/accuracy"]["n"] == 4
    assert "2 images of other classes left out" in scores["domains/set/accuracy"]["protocol"]
    assert scores["head/set/accuracy"]["protocol"].startswith("own classifier")
    document = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert document["model"]["answers"] == "its own classifier"
    assert document["data"]["train"] is None
    assert [document["chance"][n] for n in ("shape_bias", "shape_accuracy", "texture_accuracy")] == [0.5] * 3
    assert document["chance"]["cue_accuracy"] == 1.0  # two classes: one cue or the other
    table = document["tables"]["shape_bias/decisions"]
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    asked = [r for r in rows if r["shape"] != r["texture"]]
    badges = [i["badge"] for i in document["galleries"]["shape_bias"]["items"]]
    said = [
        "shape" if r["response"] == r["shape"] else "texture" if r["response"] == r["texture"] else "other"
        for r in asked
    ]
    assert sorted(badges) == sorted(said)
    shapes = {r["shape"] for r in asked}
    assert any(set(s["x"]) == shapes for s in document["figures"]["shape_bias"]["series"])


def test_with_train_a_probe_answers_unless_told_otherwise(tmp_path: Path) -> None:
    model, images = classifier(tmp_path), str(photos(tmp_path / "set", 3))
    probe = audit(model, out=str(tmp_path / "a"), train=[images], test=[images], only="accuracy", size=32)
    assert {s["name"] for s in probe["scores"]} == {"linear/set", "knn/set"}
    with pytest.raises(UserError, match="class-map"):
        audit(model, out=str(tmp_path / "b"), test=[images], only="accuracy", size=32)
    with pytest.raises(UserError, match="no classifier of its own"):
        audit(
            "cuewise/resnet-tiny",
            out=str(tmp_path / "c"),
            test=[images],
            only="accuracy",
            answers="head",
            size=32,
        )


@pytest.mark.slow
def test_accuracies_of_two_models_are_paired_by_image(tmp_path: Path) -> None:
    """Of classifier and probe, by every column of the table: right answers sum to the score."""
    images, mapping = (
        str(photos(tmp_path / "set", 4)),
        class_map(tmp_path, {"ant": [0], "bee": [1], "cat": [2]}),
    )
    for how in ({"class_map": mapping}, {"train": [str(photos(tmp_path / "train", 5, seed=1))]}):
        documents = []
        for number, model in enumerate((classifier(tmp_path), ENCODER)):
            if "train" not in how and number:
                model = classifier(tmp_path, 5)  # other weights
            place = tmp_path / f"{'-'.join(how)}{number}"
            audit(model, out=str(place), test=[images], only="accuracy", size=32, **how)
            documents.append(json.loads((place / "audit.json").read_text()))
        for document in documents:
            table = document["tables"]["accuracy/set/decisions"]
            for score in document["scores"]:
                column = table["columns"].index(table["pairs"][score["name"]])
                assert np.mean([row[column] for row in table["rows"]]) == pytest.approx(score["value"])
        found = differences(read_audits(documents, [tmp_path] * 2), np.random.default_rng(0))
        assert len(found) == (2 if "train" in how else 1)
        assert all("paired over 12 images" in d.how for d in found)


def test_people_stand_beside_the_model(tmp_path: Path) -> None:
    stimuli = conflicts(tmp_path / "conflicts")
    rows = ["subject,image,shape,texture,response"]
    for s in CLASSES:
        for j, t in enumerate(CLASSES):
            rows += [
                f"human-01,{s}{j + 1}-{t}{j + 1},{s},{t},{s}",
                f"resnet,{s}{j + 1}-{t}{j + 1},{s},{t},{t}",
            ]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    result = audit(
        classifier(tmp_path), out=str(tmp_path / "a"), test=[str(stimuli)], only="shape_bias", size=32,
        class_map=class_map(tmp_path), human=str(tmp_path / "people.csv"),
    )  # fmt: skip
    scores = {s["name"]: s for s in result["scores"]}
    assert (scores["human/shape_bias"]["value"], scores["human/shape_bias"]["n"]) == (1.0, 6)


def test_bicubic_views_are_pillows() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    got = evaluation_view(image, 24, "bicubic")
    wanted = np.asarray(Image.fromarray(image).resize((36, 24), Image.Resampling.BICUBIC))[:, 6:30]
    assert np.array_equal(got, wanted)
    assert not np.array_equal(got, evaluation_view(image, 24, "bilinear"))
