"""Studies judge classes and answers that are not finite as the audits do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuewise.studies.measures import cues, masked, suppression
from tests.oracle.answering import SILENT, Images, Model, answerer

KNOWN = ("cat", "dog", "car")


def arm(data: Images, model: Model) -> Any:
    return SimpleNamespace(model=model, answerer=lambda: answerer(KNOWN), data=lambda role: data)


def test_classes_are_judged_by_five_answered_images() -> None:
    """Cats: four of five are right and one is silent; dogs: none of five is right; the two cars are too few."""
    labels = [0] * 6 + [1] * 5 + [2] * 2
    said = dict(enumerate([0, 0, 0, 0, 1, SILENT, *[0] * 5, 2, 2]))
    found = cues.texture_classes.take(arm(Images([str(i) for i in said], KNOWN, labels), Model(said)))
    assert found == pytest.approx(
        {"texture_classes/median": 0.4, "texture_classes/highest": 0.8, "texture_classes/near_chance": 0.5}
    )


def test_a_set_with_too_few_images_of_each_class_has_no_such_quantities() -> None:
    data = Images(["a", "b"], KNOWN, [0, 1])
    assert cues.texture_classes.take(arm(data, Model({0: 0, 1: 0}))) == {}


def test_fine_tuned_networks_without_a_finite_answer_are_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Image 0 is of class 0, which is where the largest of several NaN would stand."""
    answers = np.eye(3, dtype=np.float32)[[0, 1, 1, 0]]
    answers[0] = np.nan
    found = SimpleNamespace(index=np.arange(4), features=answers)
    probe = SimpleNamespace(answers=lambda data: found)
    probe.fit = lambda data, labels: probe
    monkeypatch.setattr(masked, "FinetuneProbe", lambda *given, **more: probe)
    data: Any = Images(list("abcd"), KNOWN, [0, 1, 1, 2])
    data.select = lambda rows: data
    model = SimpleNamespace(encoder=None)
    asked: Any = SimpleNamespace(model=model, data=lambda role: data, lab=SimpleNamespace(sets={"clean": []}))
    assert masked.finetuned.take(asked) == {"finetuned": pytest.approx(2 / 3)}


def test_copies_without_a_finite_answer_are_left_out_of_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(suppression.LOWPASS) + len(suppression.NOISE) + len(suppression.WEATHER)
    hits = np.array([[1.0] * count, [0.0] * count])
    hits[1, 0] = np.nan
    monkeypatch.setattr(suppression, "right_on_copies", lambda *given: hits)
    monkeypatch.setattr(suppression, "certainty", lambda *given: {})
    data: Any = Images(["a", "b"], KNOWN, [0, 1])
    data.select = lambda rows: data
    asked: Any = SimpleNamespace(
        lab=SimpleNamespace(sets={"clean": [], "ood/drawings": []}), data=lambda role: data
    )
    model: Any = Model({0: 0, 1: 0})
    found = suppression.scored(asked, model, answerer(KNOWN), "before")
    assert found["before/lowpass"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["before/noise"] == found["before/weather"] == 0.5
