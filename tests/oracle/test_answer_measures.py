"""Accuracy, answers on copies, classes near chance and decisions on conflict images, counted by hand."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.oracle.answering import Images, Model, answerer

from cuewise.audits.answerer import NO_ANSWER, Unasked
from cuewise.audits.decisions import Decision
from cuewise.audits.measures import (
    Asked,
    accuracy,
    class_accuracies,
    conflict_scores,
    cue_accuracy,
    cues_of,
    decide,
    judged_classes,
    near_chance_bound,
    right_on_copies,
)

KNOWN = ("cat", "dog", "car")
T_SEVEN = 2.3646242510102993  # Student's t at 97.5 % with seven degrees of freedom


def wilson(hits: int, n: int) -> tuple[float, float, float]:
    """The roots of (p − hits/n)² = z² p (1 − p) / n."""
    z2, p = 1.959963984540054**2, hits / n
    roots = np.roots([1 + z2 / n, -2 * p - z2 / n, p * p]).real
    return p, min(roots), max(roots)


def widened(score: tuple[float, float, float], draws: list[float]) -> tuple[float, float, float]:
    value, low, high = score
    extra = T_SEVEN * float(np.std(draws, ddof=1))
    return (
        value,
        max(0.0, value - math.hypot(value - low, extra)),
        min(1.0, value + math.hypot(high - value, extra)),
    )


def labelled() -> tuple[Images, Model]:
    """Classes in another order than the answers', one of them unknown; image 9 cannot be read, image 4 is not answered."""
    data = Images([f"{i}.png" for i in range(10)], ("dog", "cat", "bird"), [0, 0, 1, 1, 1, 2, 2, 0, 1, 0])
    said: dict[int, int | None] = {0: 1, 1: 0, 2: 0, 3: 0, 4: None, 5: 0, 6: 2, 7: 1, 8: 2}
    return data, Model(said)


def test_accuracy_is_over_known_classes_and_finite_answers() -> None:
    data, model = labelled()
    found = accuracy(model, answerer(KNOWN), data, "own")  # type: ignore[arg-type]
    asked = {0: True, 1: False, 2: True, 3: True, 7: True, 8: False}  # a dog is 1, a cat is 0
    assert (found.name, found.n, found.protocol) == ("own", 6, "said")
    assert (found.value, found.low, found.high) == pytest.approx(wilson(sum(asked.values()), 6))
    assert found.draws == ()


def test_accuracy_over_draws() -> None:
    data = Images(["a", "b", "c", "d"], KNOWN, [0, 1, 2, 0])
    drawn = [{0: n % 2, 1: 1, 2: 2 * (n < 3), 3: 1} for n in range(8)]
    model = Model({0: 0, 1: 1, 2: 0, 3: 1}, drawn)
    shares = [sum(d[i] == label for i, label in enumerate([0, 1, 2, 0])) / 4 for d in drawn]
    found = accuracy(model, answerer(KNOWN, draws=8), data)  # type: ignore[arg-type]
    assert found.name == "accuracy"
    assert found.draws == pytest.approx(shares)
    assert (found.value, found.low, found.high) == pytest.approx(widened(wilson(2, 4), shares))


def test_no_image_of_a_known_class_is_no_accuracy() -> None:
    data = Images(["a", "b"], ("bird",), [0, 0])
    model = Model({0: 1, 1: 0}, [{0: 0, 1: 1}] * 8)
    found = accuracy(model, answerer(KNOWN, draws=8), data)  # type: ignore[arg-type]
    assert (found.n, math.isnan(found.value)) == (0, True)


def test_right_and_wrong_on_copies() -> None:
    data, _ = labelled()
    index = np.array([8, 5, 0, 2, 1])
    said = {"a": np.array([0, 1, 1, NO_ANSWER, 2]), "b": np.array([2, 2, 0, 0, 1])}
    copies = {change: (index, answers) for change, answers in said.items()}
    found = right_on_copies(Model({}, copies=copies), answerer(KNOWN), data, ["a", "b"])  # type: ignore
    # image 5 is a bird: its row is left out
    wanted = [[1, 0], [1, 0], [math.nan, 1], [0, 1]]
    np.testing.assert_array_equal(found, wanted)


def test_accuracy_by_class() -> None:
    data, model = labelled()
    wanted: dict[str, list[int]] = {}
    for i, said in model.said.items():
        name = data.classes[data.labels[i]]  # type: ignore[index]
        if name in KNOWN and said is not None:
            wanted.setdefault(name, []).append(int(said == KNOWN.index(name)))
    found = class_accuracies(model, answerer(KNOWN), data)  # type: ignore[arg-type]
    assert found == {name: (sum(hits), len(hits)) for name, hits in wanted.items()}
    assert found == {"cat": (2, 3), "dog": (2, 3)}


def test_near_chance_is_below_its_bound() -> None:
    assert [near_chance_bound(k) for k in (0, 1, 2, 8, 80, 81, 1000)] == [
        2.0,
        2.0,
        1.0,
        0.25,
        0.025,
        0.025,
        0.025,
    ]


def test_a_class_is_judged_by_five_images() -> None:
    assert judged_classes({"few": (4, 4), "enough": (1, 5), "more": (9, 10)}) == {"enough": 0.2, "more": 0.9}


CUES = {  # name → what was said; the cues by name
    "cat1-dog1.png": "cat",
    "cat2-dog2.png": "dog",
    "cat3-car3.png": "dog",
    "dog1-car1.png": "dog",
    "dog2-dog3.png": "dog",
    "car1-cat1.png": "cat",
    "cat4-boat1.png": "cat",
    "boat2-cat1.png": "cat",
    "nothing.png": "cat",
    "neither.png": "cat",
    "car2-dog1.png": None,
}


def conflicts(draws: int = 0) -> tuple[Images, Model]:
    data = Images(list(CUES), ("cat", "dog", "car", "boat"))
    said = {i: None if who is None else KNOWN.index(who) for i, who in enumerate(CUES.values())}
    drawn = [{i: (i * (n + 2)) % 3 for i in said} for n in range(draws)]
    return data, Model(said, drawn)


def by_hand(said: list[str | None]) -> list[tuple[int, int]]:
    """Counts of shape_bias, shape_accuracy, texture_accuracy and cue_accuracy on the first six images."""
    kinds: Counter[str] = Counter()
    for name, who in zip(CUES, said):
        shape, _, texture = "".join(c for c in name[:-4] if not c.isdigit()).partition("-")
        if shape == texture or shape not in KNOWN or texture not in KNOWN or who is None:
            continue
        kinds["shape" if who == shape else "texture" if who == texture else "neither"] += 1
    s, t, n = kinds["shape"], kinds["texture"], sum(kinds.values())
    return [(s, s + t), (s, n), (t, n), (s + t, n)]


def test_scores_on_conflict_images() -> None:
    data, model = conflicts()
    scores, table, asked = conflict_scores(model, answerer(KNOWN), data, "set", " (note)")  # type: ignore
    assert by_hand(list(CUES.values())) == [(2, 4), (2, 5), (2, 5), (4, 5)]
    names = ["shape_bias", "shape_accuracy", "texture_accuracy", "cue_accuracy"]
    assert [s.name for s in scores] == names
    for found, (hits, n) in zip(scores, by_hand(list(CUES.values()))):
        assert found.n == n
        assert (found.value, found.low, found.high) == pytest.approx(wilson(hits, n)), found.name
        assert found.protocol == (
            "said; set, 3 classes (note); left out: 2 images whose name does not give the cues, "
            "2 images with a class the model does not know, 1 images without a finite answer"
        )
    assert (asked.unnamed, asked.uncovered, asked.silent, table["skipped"]) == (2, 2, 1, 5)
    assert asked.rows == [0, 1, 2, 3, 4, 5]
    assert asked.decisions[3] == Decision("dog1-car1.png", "dog", "car", "dog")
    assert table["dropped"] == 1


def test_scores_on_conflict_images_over_draws() -> None:
    data, model = conflicts(draws=8)
    scores, _, _ = conflict_scores(model, answerer(KNOWN, draws=8), data)  # type: ignore[arg-type]
    redrawn = []
    for drawn in model.redrawn:
        said = [None if who is None else KNOWN[drawn[i]] for i, who in enumerate(CUES.values())]
        redrawn.append([hits / n for hits, n in by_hand(said)])
    for i, (found, (hits, n)) in enumerate(zip(scores, by_hand(list(CUES.values())))):
        draws = [row[i] for row in redrawn]
        assert found.draws == pytest.approx(draws)
        assert (found.value, found.low, found.high) == pytest.approx(widened(wilson(hits, n), draws))


def test_nothing_to_ask_about_is_reported() -> None:
    data = Images(["cat1-boat1.png", "x.png"], KNOWN)
    with pytest.raises(
        Unasked, match=r"^set: no image can be asked about; left out: 1 images whose name .*, 1 images with"
    ):
        conflict_scores(Model({0: 0, 1: 0}), answerer(KNOWN), data, "set")  # type: ignore[arg-type]
    assert Asked([], []).skipped == ""
    assert Asked([], [], silent=3).skipped == "; left out: 3 images without a finite answer"


def test_both_cues_of_all_known_classes_are_asked_about() -> None:
    """Two known classes, both in the picture: not a set that is too large."""
    data = Images(["cat1-dog1.png"], ("cat", "dog"))
    asked = decide(data, np.array([0]), np.array([1]), ("cat", "dog"))  # type: ignore[arg-type]
    assert asked.decisions == [Decision("cat1-dog1.png", "cat", "dog", "dog")]


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"shape": [0], "texture": [1]}, ("ant", "bee")),
        ({"shape": [1], "texture": [0]}, ("bee", "ant")),
        ({"shape": [1], "texture": [0], "other": [5]}, ("bee", "ant")),
        ({"shape": [1], "texture": [2]}, ("cat", "dog")),  # outside: the name decides
        ({"shape": [2], "texture": [1]}, ("cat", "dog")),
        ({"shape": [-1], "texture": [1]}, ("cat", "dog")),
        ({"shape": [1], "texture": [-1]}, ("cat", "dog")),
        ({"shape": [0]}, ("cat", "dog")),
        ({}, ("cat", "dog")),
    ],
)
def test_columns_give_the_cues_before_names(columns: dict[str, list[int]], wanted: tuple[str, str]) -> None:
    data: Any = Images(["cat1-dog1.png"], ("ant", "bee"), **columns)
    assert cues_of(data, 0, set(KNOWN)) == wanted


def test_names_with_hyphens_are_read_by_what_is_known() -> None:
    """Known to the model or to the set; other names by their form."""
    data: Any = Images(["t-shirt1-mp3 player2.png", "one1-two2.png", "no.png"], ("t-shirt",))
    assert cues_of(data, 0, {"mp3 player"}) == ("t-shirt", "mp3 player")
    assert cues_of(data, 1, {"mp3 player"}) == ("one", "two")
    assert cues_of(data, 2, {"mp3 player"}) is None
    bare: Any = Images(["cat1-dog1.png"], (), shape=[0], texture=[0])
    assert cues_of(bare, 0, set(KNOWN)) == ("cat", "dog")


def test_either_cue() -> None:
    said = [("a", "b", "a"), ("a", "b", "b"), ("a", "b", "c"), ("a", "a", "a"), ("a", "a", "c")]
    found = cue_accuracy([Decision("x", *row) for row in said], "p")
    assert (found.name, found.n, found.protocol) == ("cue_accuracy", 3, "p")
    assert found.value == pytest.approx(2 / 3)
