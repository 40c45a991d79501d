"""The shape-bias audit on answers that are written down: scores, chance levels, validity, people beside it, examples."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.oracle.answering import Images, Model, answerer

from cuewise.audits import shape_bias as module
from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding
from cuewise.audits.reference import Validity
from cuewise.audits.shape_bias import headline, human_file, judge_validity, shape_bias, standard
from cuewise.audits.subject import Subject
from cuewise.errors import UserError
from cuewise.scores import Score

KNOWN = ("cat", "dog", "car")
SAID = {
    "cat1-dog1.png": "cat",
    "cat2-dog2.png": "dog",
    "cat3-car3.png": "cat",
    "dog1-car1.png": "cat",
    "dog2-dog3.png": "dog",
    "dog3-cat1.png": "cat",
    "car1-cat1.png": "car",
}


class Asked:
    """A subject: what the audit reads of it, and the pictures that it saves."""

    name, seed, answers_by, train, base = "m", 3, "probe", "the training set", None

    def __init__(
        self, names: dict[str, str] = SAID, classes: tuple[str, ...] = KNOWN, **options: Any
    ) -> None:
        self.classes, self.options = classes, options
        self.conflict: Any = ("set", Images(list(names), classes))
        self.model = Model({i: classes.index(said) for i, said in enumerate(names.values())})
        self.saved: dict[str, int] = {}

    def answerer(self, data: Any) -> Any:
        return answerer(self.classes)

    def option(self, name: str) -> Any:
        return self.options.get(name)

    item = Subject.item

    def picture(self, image: np.ndarray, name: str) -> str:
        self.saved[name] = int(image[0, 0, 0])  # the number of the image
        return f"pictures/{name}.png"


def ask(subject: Asked) -> Finding:
    return shape_bias(subject)  # type: ignore[arg-type]


def test_scores_with_their_chance_levels() -> None:
    found = ask(Asked())
    assert {s.name: (s.value, s.n) for s in found.scores} == {
        "shape_bias": (pytest.approx(3 / 5), 5),
        "shape_accuracy": (pytest.approx(3 / 6), 6),
        "texture_accuracy": (pytest.approx(2 / 6), 6),
        "cue_accuracy": (pytest.approx(5 / 6), 6),
    }
    assert len(found.scores) == 4
    third = pytest.approx(1 / 3)
    assert found.chance == {
        "shape_bias": 0.5,
        "shape_accuracy": third,
        "texture_accuracy": third,
        "cue_accuracy": pytest.approx(2 / 3),
    }
    assert (found.notes, found.withheld) == ({}, {})
    assert all(s.protocol == "said; set, 3 classes" for s in found.scores)


def test_either_of_two_cues_cannot_be_more_than_all() -> None:
    one = Asked({"cat1-cat2.png": "cat"}, ("cat",))
    assert ask(one).chance["cue_accuracy"] == 1.0


def test_every_decision_is_in_the_table_and_equal_cues_are_not() -> None:
    rows = ask(Asked()).tables["shape_bias/decisions"]["rows"]
    assert rows == [
        ["cat1-dog1.png", "cat", "dog", "cat"],
        ["cat2-dog2.png", "cat", "dog", "dog"],
        ["cat3-car3.png", "cat", "car", "cat"],
        ["dog1-car1.png", "dog", "car", "cat"],
        ["dog3-cat1.png", "dog", "cat", "cat"],
        ["car1-cat1.png", "car", "cat", "car"],
    ]


def test_bars_by_class() -> None:
    found = ask(Asked())
    (bars,) = found.figures["shape_bias"]["series"]
    assert bars["name"] == "m"
    assert dict(zip(bars["x"], bars["y"])) == {"car": 1.0, "cat": pytest.approx(2 / 3), "dog": 0.0}
    assert [row[:5] for row in found.tables["shape_bias/classes"]["rows"]] == [
        ["car", 1, 1, 0, 0],
        ["cat", 3, 2, 1, 0],
        ["dog", 2, 0, 1, 1],
    ]


def test_no_conflict_images_are_no_answer() -> None:
    subject = Asked()
    subject.conflict = None
    with pytest.raises(Unasked, match="no cue-conflict images"):
        ask(subject)


def test_examples_with_their_verdicts() -> None:
    """Each image is the one that its caption is about; equal cues are not shown."""
    subject = Asked()
    items = ask(subject).galleries["shape_bias"]["items"]
    names = list(SAID)
    shown = []
    for n, item in enumerate(items):
        assert item["image"] == f"pictures/conflict-{n}.png"
        name = names[subject.saved[f"conflict-{n}"]]
        shape, texture = ("".join(c for c in part if not c.isdigit()) for part in name[:-4].split("-"))
        said = SAID[name]
        assert item["caption"] == f"shape {shape}, texture {texture}: answered {said}"
        assert item["badge"] == {shape: "shape", texture: "texture"}.get(said, "other")
        shown.append(name)
    assert sorted(shown) == sorted(set(names) - {"dog2-dog3.png"})
    assert sorted(i["badge"] for i in items) == ["other", "shape", "shape", "shape", "texture", "texture"]


def test_twelve_examples_at_most() -> None:
    many = {f"cat{i}-dog{i}.png": "cat" for i in range(40)}
    assert len(ask(Asked(many)).galleries["shape_bias"]["items"]) == 12


def people(folder: Path, rows: list[tuple[str, str, str, str]]) -> Path:
    file = folder / "people.csv"
    lines = ["subject,image,shape,texture,response", *(",".join(("human-1", *row)) for row in rows)]
    file.write_text("\n".join(lines))
    return file


def test_people_on_the_same_images(tmp_path: Path) -> None:
    """By the name of the image, whatever its folder and its ending."""
    file = people(
        tmp_path,
        [
            ("somewhere/cat1-dog1.jpg", "cat", "dog", "cat"),
            ("cat2-dog2", "cat", "dog", "cat"),
            ("dog1-car1.png", "dog", "car", "car"),
            ("other1-car1.png", "dog", "car", "car"),
        ],
    )
    found = ask(Asked(human=file))
    own = {s.name: (s.value, s.n) for s in found.scores if s.name.startswith("human/")}
    assert own == {
        "human/shape_bias": (pytest.approx(2 / 3), 3),
        "human/shape_accuracy": (pytest.approx(2 / 3), 3),
        "human/texture_accuracy": (pytest.approx(1 / 3), 3),
    }
    bars = found.figures["shape_bias"]["series"]
    assert [b["name"] for b in bars] == ["m", "people"]
    assert dict(zip(bars[1]["x"], bars[1]["y"])) == {"cat": 1.0, "dog": 0.0}
    assert found.tables["shape_bias/human"]["title"].startswith("People: shape bias by shape class")


def test_people_on_other_images_are_no_answer(tmp_path: Path) -> None:
    with pytest.raises(Unasked, match="no decision on an image of this set"):
        ask(Asked(human=people(tmp_path, [("x.png", "cat", "dog", "cat")])))


def test_a_file_of_people_is_looked_for_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file; give a CSV"):
        human_file(str(tmp_path / "people.csv"))
    file = people(tmp_path, [])
    assert human_file(str(file)) == file


def test_home_made_images_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    made = SimpleNamespace(classes=("a", "b"))
    monkeypatch.setattr(module, "made_conflicts", lambda data: made)
    monkeypatch.setattr(module, "validity", lambda *given: asked.append(given))
    for how, train in (("probe", "the training set"), ("head", None)):
        subject = Asked()
        subject.answers_by = how
        found = ask(subject)
        assert asked.pop() == (made, train, 3)
        assert set(found.notes) == {"shape_bias", "shape_accuracy", "texture_accuracy"}
        assert "too few other labelled images" in found.withheld["shape_bias"]
        assert "this model in 83.3\u00a0% of 6 (guessing: 66.7\u00a0%)" in found.notes["shape_bias"]
        assert all("; home-made, validity not checked: too few" in s.protocol for s in found.scores)
    reference = Validity(score(0.8, 0.7), score(0.9, 0.8), 50)
    monkeypatch.setattr(module, "validity", lambda *given: reference)
    assert all("; home-made, validity by a pair of linear probes" in s.protocol for s in ask(Asked()).scores)


def score(value: float, low: float, n: int = 100) -> Score:
    return Score("s", value, low, 1.0, n, "p")


def test_the_bounds_of_validity() -> None:
    """A headline needs: the model and the reference read half, and both more than two guesses do."""
    classes, choices = 4, 8
    guesses = {"model": 2 / 8, "reference": 1 - (3 / 4) ** 2}
    seen = set()
    for value, low, read, read_low, sources in itertools.product(
        (0.4, 0.5, 0.6),
        (0.2, 0.25, 0.3),
        (0.35, 0.4, 0.5),
        (guesses["reference"] - 0.01, guesses["reference"], guesses["reference"] + 0.01),
        (0.7, 0.8, 0.9),
    ):
        out = Finding()
        judge_validity(
            out, score(value, low), classes, choices, Validity(score(read, read_low), score(sources, 0), 50)
        )
        legible = value >= 0.5 and low > guesses["model"]
        valid = read_low > guesses["reference"] and read >= sources / 2
        seen.add((legible, valid))
        assert ("shape_bias" not in out.withheld) == (legible and valid)
        assert all(
            f"this model in {100 * value:.1f}\u00a0% of 100 (guessing: 25.0\u00a0%)" in text
            for text in out.notes.values()
        )
    assert len(seen) == 4


def test_guessing_among_one_class_is_never_beaten() -> None:
    out = Finding()
    sure = Validity(score(1.0, 0.99), score(1.0, 0.99), 50)
    judge_validity(out, score(1.0, 0.99), 16, 1, sure)
    assert "shape_bias" in out.withheld
    assert "guessing: 100.0" in out.notes["shape_bias"]
    judge_validity(over := Finding(), score(1.0, 1.01), 16, 1, sure)  # beyond all: the bound is one, not two
    assert over.withheld == {}


def test_without_a_reference_no_headline() -> None:
    out = Finding()
    judge_validity(out, score(1.0, 0.99), 16, 16, None)
    assert out.withheld["shape_bias"].endswith("to check whether they can be recognised")


def test_published_values_stand_beside_the_published_images_only() -> None:
    """airplane … truck: the 16 classes; 1280 images."""
    sixteen = ["airplane", "bear", "bicycle", "bird", "boat", "bottle", "car", "cat"]
    sixteen += ["chair", "clock", "dog", "elephant", "keyboard", "knife", "oven", "truck"]
    for classes, count, wanted in (
        (sixteen, 1280, " (standard 16-class cue-conflict)"),
        (sixteen, 1279, ""),
        (sixteen, 1281, ""),
        (sixteen[:15], 1280, ""),
        ([*sixteen, "tree"], 1280, ""),
        (sixteen[:2], 10, ""),
    ):
        data: Any = Images(["x"] * count, classes)
        assert standard(data) == wanted


def bias(value: float, low: float, high: float) -> dict[str, Score]:
    return {"shape_bias": Score("shape_bias", value, low, high, 1234, "p")}


def cues(shape: float, texture: float) -> dict[str, Score]:
    return {"shape_accuracy": score(shape, 0), "texture_accuracy": score(texture, 0)}


def test_the_headline() -> None:
    clear = "m relies on shape more than on texture: where the two disagree it follows shape in 70.0\u00a0% of its decisions"
    assert headline("m", bias(0.7, 0.6, 0.8)) == f"{clear} (95 % interval 60.0–80.0\u00a0%, n = 1,234)."
    undecided = "m shows no clear preference between shape and texture: "
    assert headline("m", bias(0.6, 0.5, 0.7)).startswith(undecided)
    assert headline("m", bias(0.4, 0.3, 0.5)).startswith(undecided)
    assert headline("m", bias(0.4, 0.3, 0.499)).startswith("m relies on texture more than on shape: ")
    for low, high in ((math.nan, 0.8), (0.6, math.nan), (math.nan, math.nan)):
        assert "how certain that is was not measured" in headline("m", bias(0.7, low, high))
    assert headline("m", bias(math.nan, 0.1, 0.2)) == ""
    assert headline("m", {}) == ""


def test_the_headline_where_neither_cue_is_named_often() -> None:
    """The bound is six of ten images."""
    scores = bias(0.7, 0.6, 0.8)
    caution = "in {}\u00a0% of the images it names neither cue"
    assert caution.format("50.0") in headline("m", scores | cues(0.25, 0.25))
    assert caution.format("40.5") in headline("m", scores | cues(0.5, 0.095))
    for shape, texture in ((0.5, 0.1), (0.6, 0.3)):
        assert "neither" not in headline("m", scores | cues(shape, texture))
    lone = {"shape_accuracy": score(0.1, 0)}
    assert "neither" not in headline("m", scores | lone)
