"""What several models show together: shared right answers, four groups, a dial's lines, a scatter of models."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joint_audits import joint_document

from cuewise.audits.kinds import read_kind
from cuewise.audits.rank_statistics import rank_correlation
from cuewise.report import sweep_figures, write_report
from cuewise.report.common import common_tables, four_ways
from cuewise.report.compare import differences
from cuewise.report.declared import installed, topic_of
from cuewise.report.figures import gather_figures
from cuewise.report.galleries import gather_items, split
from cuewise.report.paired import common_scores, mean_difference, paired_scores
from cuewise.report.reading import read_audits
from cuewise.report.sweep import alpha_of, sweep
from cuewise.report.topics import findings, order
from cuewise.report.zoo import family, pearson, zoo
from cuewise.scores import Score


def table(rows: list[tuple[str, bool, float]], **more: Any) -> dict[str, Any]:
    return {"columns": ["image", "correct", "p"], "rows": [list(r) for r in rows], **more}


A = table([("i", True, 0.9), ("j", True, 0.5), ("k", False, 0.2), ("l", False, 0.1)], common={"conf": "p"})
B = table([("i", True, 0.7), ("j", False, 0.4), ("k", True, 0.8), ("l", False, 0.3)], common={"conf": "p"})


def test_common_scores_rest_on_the_images_both_get_right() -> None:
    found = common_scores(A, B)["conf"]
    assert (found.base, found.other) == (0.9, 0.7)  # image i alone
    assert "1 images that both get right" in found.how


def test_declared_pairs_of_numbers_and_of_yes_and_no() -> None:
    pairs = {"score": "p", "accuracy/x": "correct"}
    found = paired_scores(
        {"t/decisions": {**A, "pairs": pairs}}, {"t/decisions": B}, np.random.default_rng(0)
    )
    assert found["score"].other - found["score"].base == pytest.approx(np.mean([-0.2, -0.1, 0.6, 0.2]))
    assert "McNemar" in found["accuracy/x"].how
    fewer = table([("i", True, 0.7)])
    assert "score" not in paired_scores(
        {"t/decisions": {**A, "pairs": pairs}}, {"t/decisions": fewer}, np.random.default_rng(0)
    )


def test_mean_difference_is_the_paired_normal_interval() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=50)
    b = a + rng.normal(0.3, 0.1, 50)
    found = mean_difference(list(a), list(b))
    d = b - a
    half = 1.959963984540054 * d.std(ddof=1) / math.sqrt(50)
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half))
    assert math.isnan(mean_difference([1.0], [2.0]).low)


def two(tmp_path: Path) -> list[dict[str, Any]]:
    return [
        joint_document("a", 0, 0.6, tmp_path / "a"),
        joint_document("b", 2, 0.7, tmp_path / "b"),
    ]


def test_confidence_is_compared_on_shared_right_answers(tmp_path: Path) -> None:
    documents = two(tmp_path)
    audits = read_audits(documents, [tmp_path / "a", tmp_path / "b"])
    found = {d.name: d for d in differences(audits, np.random.default_rng(0))}
    rows = [d["tables"]["confidence/photos/decisions"]["rows"] for d in documents]
    both = [(x[4], y[4]) for x, y in zip(*rows) if x[3] and y[3]]
    assert found["confidence/photos"].value == pytest.approx(np.mean([y - x for x, y in both]))
    assert f"{len(both)} images that both get right" in found["confidence/photos"].how
    assert "McNemar" in found["linear/photos"].how
    assert "paired over 200 images" in found["saliency_area"].how
    joint = common_tables(audits)[0]
    assert joint["title"] == f"On the {len(both)} images that all models get right"
    assert [r[0] for r in joint["rows"]] == ["a", "b"]
    assert joint["rows"][0][2].startswith(f"{np.mean([x for x, _ in both]):.3f}")


def test_four_groups_count_every_image_once(tmp_path: Path) -> None:
    documents = two(tmp_path)
    audits = read_audits(documents, [tmp_path / "a", tmp_path / "b"])
    figures, tables = four_ways(audits)
    rows = [d["tables"]["saliency/decisions"]["rows"] for d in documents]
    counts = {
        (p, q): sum((x[1], y[1]) == (p, q) for x, y in zip(*rows))
        for p in (True, False)
        for q in (True, False)
    }
    assert [s["y"] for s in figures[0]["series"]] == [
        [counts[True, True], counts[True, False]],
        [counts[False, True], counts[False, False]],
    ]
    names = [r[0] for r in tables[0]["rows"]]
    assert names == ["only a is right", "both are right", "both are wrong", "only b is right"]
    assert [r[1] for r in tables[0]["rows"]] == [
        counts[True, False],
        counts[True, True],
        counts[False, False],
        counts[False, True],
    ]
    assert four_ways(audits[:1]) == ([], [])
    groups = split("saliency", audits)
    assert [g for g, _ in groups] == names
    for name, pairs in groups:
        assert len(pairs) <= 4
        assert all(x.of == y.of and (x.audit.name, y.audit.name) == ("a", "b") for x, y in pairs)
        if name == "only a is right":
            assert all((x.badge, y.badge) == ("right", "wrong") for x, y in pairs)
    alone = [i for i in gather_items(audits[:1]) if i.gallery == "saliency"]
    assert len(alone) == 5  # as many as the gallery says


def test_facets_grids_and_joined_topics(tmp_path: Path) -> None:
    audits = read_audits(two(tmp_path), [tmp_path / "a", tmp_path / "b"])
    titles = [f["title"] for f in gather_figures(audits)]
    assert "Similarity: positive" in titles
    assert "Similarity: patch" in titles
    assert "Who is taken for whom: b" in titles
    assert [f["title"] for f in gather_figures(audits[:1]) if f["topic"] == "similarity"] == ["Similarity"]
    assert topic_of("sketch/x") == topic_of("texture") == "one_cue"
    assert topic_of("mine/of/my/own") == "mine"
    assert order(["zebra", "similarity", "shape_bias"]) == ["shape_bias", "similarity", "zebra"]
    assert findings([], [], []) == ""


def scored(name: str, value: float) -> Score:
    return Score(name, value, value - 0.1, value + 0.1, 100, "p")


def test_sweep_lines_over_seeds_have_students_interval() -> None:
    points = [(a, [scored("shape_bias", 0.2 + 0.1 * a + e), scored("similarity/patch", 0.5 - 0.1 * a)])
              for a in (2.0, 0.0, 1.0) for e in (-0.01, 0.0, 0.01)]  # fmt: skip
    bias, similarity = sweep_figures(points)
    line = bias["series"][0]
    assert bias["title"] == "Shape bias over α"
    assert line["x"] == [0, 1, 2]
    assert line["y"] == pytest.approx([0.2, 0.3, 0.4])
    half = 4.303 * 0.01 / math.sqrt(3)
    assert line["high"] == pytest.approx([0.2 + half, 0.3 + half, 0.4 + half])
    assert similarity["series"][0]["low"] == pytest.approx([0.5, 0.4, 0.3])  # no spread over seeds
    single = sweep_figures([(a, [scored("shape_bias", 0.3)]) for a in (0.0, 1.0, 2.0)])
    assert single[0]["series"][0]["low"] == pytest.approx([0.2] * 3)


def test_alpha_is_read_from_the_dials() -> None:
    assert alpha_of({"method": "moco", "cues": {}}) == 0
    assert alpha_of({"method": "moco", "cues": {"negatives": ["patch"], "alpha": [2.0]}}) == 2
    assert alpha_of({"method": "moco", "cues": {"negatives": ["patch"], "alpha": 3}}) == 3
    assert alpha_of({"method": "moco", "cues": {"negatives": ["patch", "texture"], "alpha": [1, 2]}}) is None
    assert alpha_of({"arch": "torchvision/resnet50"}) is None


def test_a_sweep_needs_one_method_and_three_settings(tmp_path: Path) -> None:
    documents = [joint_document(f"m{a}", a, 0.6, tmp_path / str(a)) for a in (0, 1, 2)]
    roots = [tmp_path] * 3
    assert [f["title"] for f in sweep(read_audits(documents, roots))][:1] == ["Shape bias over α"]
    assert sweep(read_audits(documents[:2], roots[:2])) == []
    documents[1]["model"]["method"] = "byol"
    assert sweep(read_audits(documents, roots)) == []


def test_correlations_against_numpy_and_by_hand() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20), rng.normal(size=20)
    assert pearson(list(x), list(y)) == pytest.approx(np.corrcoef(x, y)[0, 1])
    ranks = [np.argsort(np.argsort(v)) for v in (x, y)]
    assert rank_correlation(x, y) == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert rank_correlation(np.array([1, 2, 2, 9]), np.array([1, 2, 2, 3])) == pytest.approx(1)
    assert math.isnan(pearson([1, 1], [1, 2]))
    assert family("torchvision/vgg16_bn") == "vgg"
    assert family("timm/tf_efficientnet_lite0") == "tf"
    assert family(None) == "other"


def test_zoo_leaves_each_family_out(tmp_path: Path) -> None:
    archs = [
        "torchvision/vgg11",
        "torchvision/vgg16",
        "torchvision/resnet18",
        "torchvision/resnet50",
        "x/alexnet",
    ]
    documents = [joint_document(f"m{i}", 0, 0.5 + i / 20, tmp_path / str(i), a) for i, a in enumerate(archs)]
    figures, tables = zoo(read_audits(documents, [tmp_path] * 5))
    assert [s["text"] for s in figures[0]["series"]] == [[f"m{i}"] for i in range(5)]
    assert [r[0] for r in tables[0]["rows"]] == ["all", "without alexnet", "without resnet", "without vgg"]
    assert [r[1] for r in tables[0]["rows"]] == [5, 4, 3, 3]
    assert zoo(read_audits(documents[:2], [tmp_path] * 2)) == ([], [])


def test_what_audits_declare_is_what_figures_of_many_models_show() -> None:
    """Every panel and both axes of the scatter belong to a score that an audit gives today."""
    kinds = [k for audit in installed().values() for k in audit.kinds]
    names = [k.pattern.replace("*", "photos") for k in kinds if k.panel]
    figures = sweep_figures([(a, [scored(name, 0.5) for name in names]) for a in (0.0, 1.0)])
    titles = [
        "Shape bias",
        "Decisions for shape and for texture",
        "Accuracy",
        "Kind and breed",
        "Similarity of pairs",
    ]
    assert sorted(f["title"] for f in figures) == sorted(f"{title} over α" for title in titles)
    assert sum(len(f["series"]) for f in figures) == len(names)
    assert all(f["ylabel"] for f in figures)
    assert {k.pattern for k in kinds if k.zoo == "textures"} >= {
        "texture/accuracy",
        "texture_classes/accuracy",
    }
    assert {k.pattern for k in kinds if k.zoo == "images"} == {"head/*/accuracy", "linear/*", "knn/*"}
    assert all(read_kind(k.as_dict()) == k for k in kinds)


def test_numbers_of_figures_and_joint_tables_stand_beside_the_page(tmp_path: Path) -> None:
    path = write_report(two(tmp_path), tmp_path / "out", roots=[tmp_path / "a", tmp_path / "b"])
    with (tmp_path / "out" / "figures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {"Similarity: patch", "Reliability"} <= {r["figure"] for r in rows}
    assert sum(r["figure"] == "Reliability" for r in rows) == 6
    note = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "images that all models get right" in note
    assert "only a is right" in note
    assert path.stat().st_size < 8_000_000
