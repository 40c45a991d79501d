"""The headline says what was measured, both ways, and says when it cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cuewise.report.compare import differences
from cuewise.report.headline import changed_dials, headline
from cuewise.report.reading import read_audits
from cuewise.scores import proportion


def audit(
    name: str, shape: int, n: int = 400, *, knn: int = 800, cues: dict[str, Any] | None = None
) -> dict[str, Any]:
    scores = [
        proportion("shape_bias", shape, n, "p").as_dict(),
        proportion("knn/photos", knn, 1000, "k").as_dict(),
    ]
    return {"model": {"name": name, "cues": cues or {}}, "scores": scores}


def said(*documents: dict[str, Any]) -> str:
    audits = read_audits(documents, [Path()] * len(documents))
    return headline(audits, differences(audits, np.random.default_rng(0)))


def test_one_model_three_ways() -> None:
    assert said(audit("m", 100)).startswith(
        "m relies on texture more than on shape: where the two disagree it follows shape in 25.0\u00a0%"
    )
    assert "relies on shape more than on texture" in said(audit("m", 300))
    assert "no clear preference" in said(audit("m", 205))
    assert "no clear preference" in said(audit("m", 7, 10))


def test_random_weights_come_first() -> None:
    d = audit("m", 100)
    d["model"]["weights"] = "random"
    assert said(d).startswith("With random weights, untrained: m relies on texture more than on shape")
    d["model"]["weights"] = {"file": "w.safetensors", "sha256": "ab" * 32}
    assert said(d).startswith("m relies on texture more than on shape")


def test_one_model_that_names_neither_cue_is_not_praised() -> None:
    d = audit("m", 30, 40)
    d["scores"] += [
        proportion("shape_accuracy", 30, 400, "p").as_dict(),
        proportion("texture_accuracy", 10, 400, "p").as_dict(),
    ]
    assert "in 90.0\u00a0% of the images it names neither cue" in said(d)


def test_two_models_name_the_dial_and_the_change() -> None:
    sentence = said(
        audit("plain", 120, cues={"alpha": 0, "negatives": ["patch"]}),
        audit("averse", 240, cues={"alpha": 2, "negatives": ["patch"]}),
    )
    assert sentence.startswith(
        "With alpha 2 instead of 0 (averse against plain), shape bias rose from 30.0\u00a0% to 60.0\u00a0% (+30.0 points"
    )
    assert "k-NN accuracy on photos shows no clear difference (+0.0 points" in sentence


def test_two_models_fall_and_unclear() -> None:
    assert "shape bias fell from 60.0" in said(audit("a", 240), audit("b", 120))
    unclear = said(audit("a", 200), audit("b", 208))
    assert "shape bias shows no clear difference (50.0\u00a0% to 52.0\u00a0%; +2.0 points" in unclear
    assert "rose" not in unclear
    assert "k-NN accuracy on photos fell by 30.0 points" in said(audit("a", 200), audit("b", 208, knn=500))


def test_two_models_without_common_ground() -> None:
    a, b = audit("a", 200), audit("b", 200)
    for score in b["scores"]:
        score["protocol"] = "another"
    assert "nothing can be compared" in said(a, b)


def test_missing_numbers_make_no_claim() -> None:
    assert "No score" in said({"model": {"name": "m"}})
    nan = {
        "model": {"name": "m"},
        "scores": [{"name": "shape_bias", "value": None, "low": None, "high": None, "n": 0, "protocol": ""}],
    }
    assert "No score of m" in said(nan)
    bare = {"model": {"name": "m"}, "scores": [{"name": "shape_bias", "value": 0.9, "n": 5}]}
    assert "how certain that is was not measured" in said(bare)
    assert said() == "Nothing was audited."


def test_several_models() -> None:
    assert "do not overlap" in said(audit("a", 100), audit("b", 200), audit("c", 300))
    assert "no clear difference" in said(audit("a", 200), audit("b", 204), audit("c", 208))


def test_several_models_of_which_one_is_withheld() -> None:
    models = [audit("a", 100), audit("b", 200), audit("withheld", 300)]
    assert "withheld" in said(*models)
    models[2]["withheld"] = {"shape_bias": "too few"}
    assert "withheld" not in said(*models)
    assert "50.0" in said(*models)


def test_changed_dials_look_inside_nested_settings() -> None:
    a = {"method": "moco", "cues": {"alpha": 0, "hard": {"kind": "mochi", "n": 1}}}
    b = {"method": "byol", "cues": {"alpha": 0, "hard": {"kind": "mochi", "n": 2}}}
    assert changed_dials(a, b) == [("method", "moco", "byol"), ("hard.n", 1, 2)]


def test_two_models_of_which_one_has_a_dial_more() -> None:
    plain, averse = (
        audit("plain", 120),
        audit("averse", 240, cues={"negatives": ["patch"], "alpha": [2.0], "patch_size": "5:12"}),
    )
    assert said(plain, averse).startswith(
        "With patch negatives, alpha 2 and patch size 5:12 (averse against plain), "
    )
    assert said(averse, plain).startswith(
        "Without patch negatives, alpha 2 and patch size 5:12 (plain against averse)"
    )


def test_a_sweep_is_described_by_its_ends() -> None:
    def arm(name: str, hits: int, alpha: float) -> dict[str, Any]:
        cues = {"negatives": ["patch"], "alpha": [alpha]} if alpha else {}
        document = audit(name, hits, cues=cues)
        document["model"]["method"] = "moco"
        return document

    arms = [arm("a", 100, 0), arm("b", 160, 1), arm("c", 240, 2)]
    sentence = said(*arms)
    assert sentence.startswith(
        "As α goes from 0 to 2, shape bias goes from 25.0\u00a0% to 60.0\u00a0% (+35.0 points"
    )
    assert "no clear" not in sentence
    seeds = said(*arms, arm("d", 260, 2))
    assert "from 25.0\u00a0% to 62.5\u00a0% (means over 1 and 2 models)" in seeds


def test_without_shape_bias_only_accuracies_are_reported() -> None:
    scores = [
        {"name": n, "value": v, "low": v, "high": v, "n": 9, "protocol": "p"}
        for n, v in (("head/photos/accuracy", 0.5), ("sketch/accuracy", 0.2), ("confidence/photos", 0.99))
    ]
    sentence = said({"model": {"name": "m"}, "scores": scores})
    assert "own classifier's accuracy on photos is the highest at 50.0" in sentence
    assert "sketch accuracy the lowest at 20.0" in sentence
