"""The page: whole, small, offline; anything missing becomes a placeholder and never an error."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_audits import CLASSES, document
from PIL import Image

import cuewise
from cuewise.audits.shape_bias import STANDARD
from cuewise.report import write_card, write_report
from cuewise.report.card import card_of_run
from cuewise.report.declared import title_of
from cuewise.report.figures import equal_axes, gather_figures
from cuewise.report.numbers import digits, is_share, show
from cuewise.report.pictures import PictureFile, embed_all
from cuewise.report.reading import read_audits
from cuewise.report.score_cards import references


def test_writes_four_files_with_the_same_numbers(two: dict[str, Any]) -> None:
    path = write_report(**two)
    page, note = path.read_text(encoding="utf-8"), (path.parent / "report.md").read_text(encoding="utf-8")
    bias = two["documents"][1]["scores"][0]["value"]
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "figures.csv",
        "report.html",
        "report.md",
        "scores.csv",
    ]
    for said in (page.replace("\u00a0", " "), note):
        assert f"{100 * bias:.1f} %" in said
        assert "shape bias rose from" in said
    assert str(bias) in (path.parent / "scores.csv").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


@pytest.mark.slow
def test_is_the_same_file_each_time(two: dict[str, Any]) -> None:
    first = write_report(**two).read_bytes()
    assert write_report(**two).read_bytes() == first


@pytest.mark.slow
def test_a_typical_audit_stays_under_eight_megabytes(tmp_path: Path) -> None:
    """Four models, each with three galleries of 40 noisy photographs: noise is the worst a JPEG can meet."""
    rng = np.random.default_rng(0)
    roots = [tmp_path / str(i) for i in range(4)]
    documents = []
    for i, root in enumerate(roots):
        d = document(f"m{i}", i, 0.5, root, i)
        items = []
        for k in range(40):
            Image.fromarray(rng.integers(0, 255, (256, 256, 3), dtype=np.uint8)).save(
                root / f"pictures/n{k}.jpg", quality=70
            )
            items.append({"image": f"pictures/n{k}.jpg", "caption": str(k), "badge": "other", "alt": str(k)})
        d["galleries"] |= {f"g{j}": {"title": f"g{j}", "items": items} for j in range(3)}
        documents.append(d)
    path = write_report(documents, tmp_path / "out", roots=roots)
    assert 1_000_000 < path.stat().st_size < 8_000_000
    assert "picture not available" not in path.read_text(encoding="utf-8")


def test_pictures_stay_in_their_folder_and_in_their_budget(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (200, 300, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "secret.png")
    Image.fromarray(noise).save(inside / "ok.png")
    Image.new("RGBA", (10, 10), (255, 0, 0, 0)).save(inside / "alpha.png")
    (inside / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnope")
    asked = ["ok.png", "../secret.png", str(tmp_path / "secret.png"), "none.png", "broken.png", "alpha.png"]
    got = embed_all([PictureFile(name, inside, 100, name) for name in asked])
    assert [g is not None for g in got] == [True, False, False, False, False, True]
    assert got[0] is not None
    assert (got[0].width, got[0].height) == (100, 67)
    different = [np.roll(noise, k, axis=0) for k in range(12)]
    few = embed_all([PictureFile(a, inside, 300, k) for k, a in enumerate(different)], budget=60_000)
    assert sum(len(g.uri) for g in few if g) < 60_000 * 1.4
    assert few[0] is not None


@pytest.mark.slow
def test_equal_pictures_of_two_models_share_a_tile(two: dict[str, Any]) -> None:
    page = write_report(**two).read_text(encoding="utf-8")
    assert page.count('class="tile"') == 12
    other = two["documents"][1]["galleries"]["conflicts"]["items"][0]
    other["caption"] = "said something else"
    page = write_report(**two).read_text(encoding="utf-8")
    assert page.count('class="tile"') == 12
    assert "said something else" in page
    other["image"] = "pictures/5.png"  # the second model now shows its fifth picture twice
    assert write_report(**two).read_text(encoding="utf-8").count('class="tile"') == 13


EMPTY: list[dict[str, Any]] = [
    {},
    {"model": None, "scores": None, "tables": None, "figures": None, "galleries": None, "data": None, "environment": None},
    {"scores": [{}, {"name": "x", "value": "many"}, {"name": "y", "value": math.inf, "low": -math.inf, "n": "NaN"}, 3, None]},
    {"tables": {"t": {}, "u": {"columns": ["a"], "rows": []}}},
    {"tables": {"v": {"columns": ["a", "b"], "rows": [[1], [1, 2, 3], None, [None, True]]}}},
    {"figures": {"f": {}, "g": {"kind": "pie", "series": [{"y": [1]}]}}},
    {"figures": {"h": {"kind": "bars", "series": [{"x": [], "y": []}]}}},
    {"figures": {"f": {"kind": "lines", "series": [{"x": [1], "y": [math.nan]}, {"x": [3], "y": [1, 2], "low": []}, 7]}}},
    {"figures": {"f": {"kind": "histogram", "series": [{"x": [1], "y": [4]}, {"x": ["a", "b"], "y": [4, 5]}, {"y": [1, 2]}]}}},
    {"galleries": {"g": {}, "h": {"items": [{}, {"image": None}, {"image": 5}, {"image": "x.png", "caption": None}, None]}}},
    {"data": {"train": [], "test": [None, {}, {"skipped": [None, {"path": None}]}]}, "command": None},
]  # fmt: skip


@pytest.mark.parametrize("broken", EMPTY)
def test_misshapen_documents_never_crash(broken: dict[str, Any], tmp_path: Path) -> None:
    for documents in ([broken], [broken, broken], [broken, document("m", 1, 0.5, tmp_path, 1)], [broken] * 6):
        page = write_report(
            documents, tmp_path, curves={"m": [{}, {"step": None, "train/loss": 1.0}]}
        ).read_text(encoding="utf-8")
        assert page.endswith("</html>\n")
        assert 'class="lead"' in page


def test_no_documents_is_a_page_too(tmp_path: Path) -> None:
    assert "Nothing was audited." in write_report([], tmp_path).read_text(encoding="utf-8")


def test_unknown_kinds_and_missing_scores_say_so(tmp_path: Path) -> None:
    documents = [{"model": {"name": "m"}, "scores": [{"name": "shape_bias", "value": None}],
                  "figures": {"f": {"title": "F", "kind": "pie", "series": [{"name": "s", "x": ["a"], "y": [3]}]}}}]  # fmt: skip
    page = write_report(documents, tmp_path).read_text(encoding="utf-8")
    assert "A figure of the kind “pie” is not known here" in page
    assert "not measured" in page


def test_published_values_only_for_the_published_stimuli(tmp_path: Path) -> None:
    assert dict(references("shape_bias", {f"{STANDARD}, mean probability"})) == {
        "ResNet-50": 0.22,
        "GoogLeNet": 0.31,
        "ResNet-50 on stylised images": 0.81,
        "humans": 0.96,
    }
    assert references("shape_bias", {"own 16 classes, cue-conflict"}) == []
    assert references("shape_bias", {STANDARD, "shapes:conflict"}) == []
    assert references("shape_accuracy", {STANDARD}) == []
    for protocol, shown in ((STANDARD, True), ("shapes:conflict", False)):
        score = {"name": "shape_bias", "value": 0.3, "low": 0.2, "high": 0.4, "n": 1200, "protocol": protocol}
        page = write_report([{"model": {"name": "m"}, "scores": [score]}], tmp_path).read_text(
            encoding="utf-8"
        )
        assert ("humans 96\u00a0%" in page) is shown


def test_equal_model_names_are_distinguished() -> None:
    assert [a.name for a in read_audits([{"model": {"name": "m"}}] * 3, [Path()] * 3)] == [
        "m",
        "m (2)",
        "m (3)",
    ]


def test_figures_of_one_name_are_drawn_together_with_edges_and_bounds(two: dict[str, Any]) -> None:
    figures = gather_figures(read_audits(two["documents"], two["roots"]))
    bars = figures[0]
    assert [s["model"] for s in bars["series"]] == ["plain", "texture-averse"]
    assert bars["series"][0]["x"] == list(CLASSES)
    assert len(bars["series"][0]["low"]) == len(CLASSES)
    histogram = next(f for f in figures if f["kind"] == "histogram")["series"][0]
    assert histogram["x"][0] == -1
    assert histogram["x2"][-1] == 1
    assert len(histogram["x"]) == len(histogram["x2"]) == len(histogram["y"]) == 40


def test_long_series_are_thinned_and_keep_their_ends() -> None:
    figure = {"kind": "scatter", "series": [{"x": list(range(50_000)), "y": list(range(50_000))}]}
    series = gather_figures(read_audits([{"figures": {"f": figure}}], [Path()]))[0]["series"][0]
    assert len(series["x"]) <= 2000
    assert (series["x"][0], series["x"][-1]) == (0, 49_999)


def test_numbers_are_worded_as_people_say_them() -> None:
    shares = (
        "shape_bias",
        "knn/photos",
        "linear/photo",
        "sketch/edges/accuracy",
        "texture/accuracy",
        "coarse/x",
    )
    others = (
        "similarity/patch",
        "negative_similarity",
        "entropy/x",
        "corruption/mce",
        "heads/entropy_bits/x",
        "mine",
    )
    assert all(is_share(name) for name in shares)
    assert not any(is_share(name) for name in others)
    assert (show(0.314159, "shape_bias"), show(-0.2, "negative_similarity"), show(math.nan)) == (
        "31.4\u00a0%",
        "−0.200",
        "—",
    )
    assert [digits(v) for v in (0, 1234.5, 12.34, 0.00012, 3e9)] == ["0", "1,234", "12.3", "0.00012", "3e+09"]
    names = (
        "texture/accuracy",
        "corruption/noise/accuracy",
        "head/a b/accuracy",
        "knn/a/b",
        "texture_accuracy",
    )
    assert [title_of(n) for n in names] == [
        "Texture accuracy",
        "Accuracy under corruption: noise",
        "Own classifier's accuracy on a b",
        "k-NN accuracy on a/b",
        "Decisions for texture",  # texture/accuracy is on copies without shape
    ]
    assert (title_of("x<y"), title_of("my_score/of_this")) == ("X<y", "My score · of this")


def test_model_card_identifies_the_run(tmp_path: Path) -> None:
    run = tmp_path / "averse"
    run.mkdir()
    path = write_card(
        run,
        config={"method": "moco", "epochs": 10, "optim": {"lr": 0.03}},
        encoder={"arch": "torchvision/resnet18", "method": "moco", "size": 64, "cues": {"alpha": 2}},
        environment={
            "python": "3.11",
            "data": {"count": 9, "hash": "ab", "skipped": [{"path": "a|<b>.jpg", "why": "truncated"}]},
        },
        metrics=[{"step": 1, "train/loss": 7.0}, {"step": 2, "train/loss": 6.5, "dials/feature_std": 0.08}],
        scores=[
            {
                "name": "shape_bias",
                "value": 0.61,
                "low": 0.55,
                "high": 0.67,
                "n": 300,
                "protocol": "shapes:conflict",
            }
        ],
    )
    card = path.read_text(encoding="utf-8")
    for said in ("# averse", "A torchvision/resnet18 encoder, pretrained with moco; cue dials: alpha 2.", "| train/loss | 6.50 |",
                 "| optim.lr | 0.03 |", "61.0 %", "a\\|&lt;b&gt;.jpg"):  # fmt: skip
        assert said in card
    empty = write_card(tmp_path, config={}, encoder={}, environment={}).read_text(encoding="utf-8")
    assert "Not audited yet" in empty


@pytest.mark.slow
def test_a_run_has_its_card_when_training_ends(tmp_path: Path) -> None:
    run = tmp_path / "run"
    cuewise.pretrain(
        "shapes:aligned?n=32&size=16", out=str(run), model="cuewise/resnet-tiny?width=8", size=16, method="simclr",
        batch_size=16, epochs=1, steps=1, workers="0", devices="cpu:1",
    )  # fmt: skip
    card = (run / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "pretrained with simclr" in card
    assert "Not audited yet" in card
    assert card_of_run(tmp_path) is None


RANDOM, TRAINED = "random", {"file": "w.safetensors", "sha256": "ab" * 32}


@pytest.mark.parametrize(("weights", "loud"), [(RANDOM, True), (TRAINED, False), (None, False)])
def test_random_weights_are_prominent_and_weights_are_on_every_card(
    weights: Any, loud: bool, tmp_path: Path
) -> None:
    d = document("m", 0, 0.3, tmp_path, 1)
    d["model"]["weights"] = weights
    page = write_report([d], tmp_path / "out").read_text(encoding="utf-8")
    note = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    said = "m: the weights are random: every number is about an untrained network"
    assert (said in page, said in note) == (loud, loud)
    cards = page.count('class="card"')
    assert page.count("random weights</span>") == (cards if loud else 0)
    assert page.count(">weights<span") == (cards if weights else 0)
    if weights == TRAINED:
        assert page.count("w.safetensors (sha256 abababababab…)") == cards + 1  # and once among the models
    written = write_card(tmp_path, config={}, encoder={"weights": weights}, environment={}).read_text()
    assert ("The weights are random" in written) is loud


def test_every_card_has_a_chance_level_or_says_how_to_read_it() -> None:
    from cuewise.report.declared import installed

    for audit in installed().values():
        for kind in audit.kinds:
            assert kind.meaning
            if kind.card and kind.unit != "share":
                assert kind.reading, kind.pattern


def test_chance_is_drawn_and_reported(tmp_path: Path) -> None:
    score = {"name": "sketch/accuracy", "value": 0.3, "low": 0.2, "high": 0.4, "n": 100, "protocol": "p"}
    d = {"model": {"name": "m"}, "scores": [score], "chance": {"sketch/accuracy": 0.125}}
    page = write_report([d], tmp_path).read_text(encoding="utf-8")
    assert "guessing gives 12.5\u00a0%" in page
    assert 'x1="12.50%" x2="12.50%" y1="3" y2="17" class="chance"' in page


def test_one_number_has_one_card(tmp_path: Path) -> None:
    """The accuracy on a set of edges is the sketch accuracy: two names, one number."""
    names = ("head/edges/accuracy", "sketch/accuracy", "domains/edges/accuracy", "head/photos/accuracy")
    where = "own classifier, 16 categories"
    protocols = (where, *[f"{where}; edges, 16 of 16 classes"] * 2, where)
    scores = [
        {"name": n, "value": 0.25, "low": 0.2, "high": 0.3, "n": 160, "protocol": p}
        for n, p in zip(names, protocols)
    ]
    page = write_report([{"model": {"name": "m"}, "scores": scores}], tmp_path).read_text(encoding="utf-8")
    assert page.count('class="card"') == 2  # photos happen to have the same accuracy and keep their card
    assert "The same number: Accuracy on edges, Sketch accuracy." in page


def test_protocols_are_in_words_and_the_files_keep_the_short_form(tmp_path: Path) -> None:
    short = "linear_lbfgs_standardised_l2_of_5_held_out; conflicts, 3 classes"
    score = {"name": "shape_bias", "value": 0.3, "low": 0.2, "high": 0.4, "n": 100, "protocol": short}
    page = write_report([{"model": {"name": "m"}, "scores": [score]}], tmp_path).read_text(encoding="utf-8")
    words = "Linear probe (L-BFGS) on standardised features, L2 penalty chosen among 5 on held-out training images"
    assert f"{words}; conflicts, 3 classes" in page
    assert short not in page
    assert short in (tmp_path / "scores.csv").read_text(encoding="utf-8")


def test_an_audit_from_elsewhere_speaks_through_its_document(tmp_path: Path) -> None:
    kind = {
        "pattern": "mine/*",
        "title": "Wings on {}",
        "meaning": "Share of wings.",
        "unit": "share",
        "reading": "",
        "better": "",
    }
    d = {
        "model": {"name": "m"},
        "scores": [{"name": "mine/birds", "value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "protocol": "p"}],
        "tables": {"mine": {"title": "T", "columns": ["a"], "rows": [[1]]}},
        "audits": {"mine": {"question": "Does it fly?", "topic": "mine", "rank": 1, "kinds": [kind, 7, {}]}},
    }
    page = write_report([d], tmp_path).read_text(encoding="utf-8")
    for said in ("Wings on birds", "50.0\u00a0%", "Does it fly?", "Share of wings."):
        assert said in page


def test_a_withheld_score_makes_no_headline(tmp_path: Path) -> None:
    d = document("m", 0, 0.9, tmp_path, 1)
    d["withheld"] = {"shape_bias": "home-made conflict images: 20 % are recognised"}
    page = write_report([d], tmp_path / "one").read_text(encoding="utf-8")
    assert "m: no statement on shape bias (home-made conflict images: 20 % are recognised)." in page
    assert "relies on shape" not in page
    other = document("o", 1, 0.2, tmp_path / "b", 2)
    both = write_report([d, other], tmp_path / "two", roots=[tmp_path, tmp_path / "b"])
    lead = both.read_text(encoding="utf-8").partition('class="lead"')[2].partition("</p>")[0]
    assert "shape bias" not in lead


def test_figures_side_by_side_have_equal_axes() -> None:
    figures: list[dict[str, Any]] = [
        {
            "topic": "t",
            "kind": "bars",
            "ylabel": "accuracy",
            "series": [{"y": [v, None], "low": [v - 0.1, None]}],
        }
        for v in (0.3, 0.9)
    ]
    figures.append({"topic": "u", "kind": "bars", "ylabel": "accuracy", "series": [{"y": [0.5]}]})
    equal_axes(figures)
    assert [f.get("range") for f in figures] == [pytest.approx([0.2, 0.9]), pytest.approx([0.2, 0.9]), None]
