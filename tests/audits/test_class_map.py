"""Training classes of a probe gathered into the categories of a test set: means, the 7-of-16 rule, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuewise import UserError, audit
from cuewise.audits.head import Grouped, groups_for, imagenet16, wordnet
from cuewise.data.subset import read_list
from cuewise.probes import Probe
from tests.audits.small_models import ENCODER, class_map, conflicts, photos

OPTIONS: dict[str, Any] = {"size": 32, "workers": "0"}


class Fixed(Probe):
    """Probabilities that are given."""

    def __init__(self, p: Any) -> None:
        self.p = np.asarray(p, np.float32)

    protocol = "fixed"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.p


def test_a_category_has_the_mean_of_its_training_classes() -> None:
    """With sums, dog would win by the number of its breeds."""
    probe = Fixed([[0.2, 0.2, 0.2, 0.3, 0.1]])
    found = Grouped(probe, {"dog": [0, 1, 2], "cat": [3], "car": [4, 5]}, "3 of 3 categories by --class-map")
    np.testing.assert_allclose(found.predict_proba(np.zeros((1, 1))), [[0.2, 0.3, 0.05]], rtol=1e-6)
    assert "mean over the training classes of each of 3 of 3 categories" in found.protocol


def test_imagenet100_covers_seven_of_sixteen_categories() -> None:
    """The classes that the published subset has in each category; the others are left out, since an empty mean is NaN."""
    train = read_list("imagenet100")
    found = groups_for(list(imagenet16()), train, None)
    assert found is not None
    groups, source = found
    assert source == "7 of 16 categories by WordNet ids"
    number = {name: rows[0] for name, rows in wordnet().items()}
    outputs = {name: sorted(number[train[i]] for i in rows) for name, rows in groups.items()}
    dogs = [155, 157, 158, 166, 167, 169, 176, 180, 209, 211, 222, 228, 234, 236, 246, 267, 268]
    assert outputs == {
        "bird": [15, 90, 99, 131, 137],
        "cat": [281],
        "chair": [765, 857],
        "dog": dogs,
        "keyboard": [508],
        "oven": [766],
        "truck": [717],
    }


def test_equal_names_need_no_map() -> None:
    assert groups_for(["cat", "dog"], ["cat", "dog"], None) is None
    assert groups_for(["cat", "dog"], ["n1", "n2"], None) is None
    assert groups_for(["x"], ["n02123045"], None) is None


TABBY, PERSIAN, ROTISSERIE = (
    "n02123045",
    "n02123394",
    "n04111531",
)  # two cats, and an oven by the published list


@pytest.mark.parametrize("mapping", [None, {"cat": [TABBY, PERSIAN], "oven": [2]}])
@pytest.mark.slow
def test_shape_bias_through_a_probe(mapping: Any, tmp_path: Path) -> None:
    """Stimuli with a category that has no training class are left out and counted."""
    train = photos(tmp_path / "train", 3, classes=(TABBY, PERSIAN, ROTISSERIE))
    stimuli = conflicts(tmp_path / "stimuli", ("cat", "oven", "dog"))
    file = class_map(tmp_path, mapping) if mapping else None
    audit(ENCODER, out=str(tmp_path / "a"), train=[str(train)], test=[str(stimuli)], only="shape_bias", answers="probe",
          class_map=file, **OPTIONS)  # fmt: skip
    scores = {s["name"]: s for s in json.loads((tmp_path / "a/audit.json").read_text())["scores"]}
    found = scores["shape_accuracy"]
    assert found["n"] == 2  # cat-oven and oven-cat; five images have a dog in them, two have equal cues
    source = "2 of 2 categories by --class-map" if mapping else "2 of 16 categories by WordNet ids"
    assert source in found["protocol"]
    assert "left out: 5 images with a class the model does not know" in found["protocol"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"zebra": ["ant"]}, "names none of the classes of the test sets"),
        ({"cat": ["nobody"]}, "names training class 'nobody', but there are 3"),
        ({"cat": [3]}, "names training class 3, but there are 3"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_before_any_work(
    content: Any, message: str, tmp_path: Path
) -> None:
    train, stimuli = photos(tmp_path / "train", 2), conflicts(tmp_path / "stimuli", ("cat", "car"))
    with pytest.raises(UserError, match=message):
        audit(ENCODER, out=str(tmp_path / "a"), train=[str(train)], test=[str(stimuli)], only="shape_bias",
              class_map=class_map(tmp_path, content), **OPTIONS)  # fmt: skip


@pytest.mark.slow
def test_accuracy_and_saliency_answer_in_the_categories(tmp_path: Path) -> None:
    train = photos(tmp_path / "train", 4, classes=("red", "green", "blue"))
    test = photos(tmp_path / "set", 4, classes=("warm", "cold", "icy"), seed=1)
    mapping = class_map(tmp_path, {"warm": ["red"], "cold": ["green"], "icy": ["blue"]})
    audit(ENCODER, out=str(tmp_path / "a"), train=[str(train)], test=[str(test)], only="accuracy,saliency,color",
          class_map=mapping, **OPTIONS)  # fmt: skip
    document = json.loads((tmp_path / "a/audit.json").read_text())
    scores = {s["name"]: s["value"] for s in document["scores"]}
    assert scores["linear/set"] == scores["knn/set"] == scores["color/clean/accuracy"] == 1.0
    said = {row[2] for row in document["tables"]["saliency/decisions"]["rows"]}
    assert said == {"warm", "cold", "icy"}
