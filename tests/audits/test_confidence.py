"""Confidence, calibration, retrieval, coarse and fine, texture classes: the numbers by hand, and on real subjects."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from cuewise import audit
from cuewise.audits.answerer import Unasked
from cuewise.audits.answers import Answers
from cuewise.audits.coarse_fine import coarse_fine
from cuewise.audits.confidence import calibration_error, confidence, entropy, reliability_series
from cuewise.audits.engine import Engine
from cuewise.audits.head import Head
from cuewise.audits.measures import near_chance_bound
from cuewise.audits.pairs import PAIRS, pair_views, recipe_of
from cuewise.audits.retrieval import chance, neighbours, retrieval, same
from cuewise.audits.saliency import features_to_logits, saliency
from cuewise.audits.similarity import similarity
from cuewise.audits.subject import Subject
from cuewise.audits.subjects import AuditRequest, prepare
from cuewise.audits.superclasses import read_superclasses
from cuewise.audits.texture_classes import histogram, per_class, texture_classes
from cuewise.data import open_data
from cuewise.data.shapes.outlines import SUPERCLASSES
from cuewise.data.subset import read_list
from cuewise.encoders import load_encoder
from cuewise.errors import UserError
from tests.audits.small_models import photos

MODEL = "cuewise/resnet-tiny?width=8"
TRAIN = "shapes:aligned?n=160&size=32&rho=1"
TEST = "shapes:aligned?n=64&size=32&part=test"
NAME = "shapes:aligned"


def prepared(folder: Path, train: list[str], test: list[str]) -> Subject:
    return prepare(
        MODEL, "m", load_encoder(MODEL, size=32), folder, AuditRequest(train, test, "auto", 0), Engine()
    )


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    found = prepared(tmp_path, [TRAIN], [TEST, "shapes:conflict?n=64&size=32"])
    found.embedded, found.given = False, {}  # as with images of the user's own
    return found


def loop_error(top: list[float], right: list[bool], bins: int) -> float:
    """Guo et al. 2017, equation 3, bin by bin."""
    total = 0.0
    for b in range(bins):
        own = [i for i, p in enumerate(top) if b / bins < p <= (b + 1) / bins or (b == 0 and p == 0)]
        if own:
            accuracy = sum(right[i] for i in own) / len(own)
            mean = sum(top[i] for i in own) / len(own)
            total += len(own) / len(top) * abs(accuracy - mean)
    return total


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_calibration_error_is_the_papers_loop(bins: int) -> None:
    rng = np.random.default_rng(bins)
    top = np.concatenate([rng.random(300), [0.0, 1.0, 0.2, 0.4, 1 / 3]])
    right = rng.random(len(top)) < top**2
    assert calibration_error(top, right, bins) == pytest.approx(loop_error(list(top), list(right), bins))


def test_calibration_error_of_the_honest_and_the_boastful() -> None:
    assert calibration_error(np.full(10, 0.7), np.arange(10) < 7) == pytest.approx(0)
    assert calibration_error(np.ones(10), np.arange(10) < 3) == pytest.approx(0.7)


def test_entropy_is_in_nats() -> None:
    p = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]])
    assert entropy(p) == pytest.approx([math.log(4), 0, math.log(2)])


def test_reliability_holds_the_mean_confidence_and_wilson() -> None:
    s = reliability_series(np.array([0.95, 0.99, 0.2]), np.array([True, False, True]))
    assert s["x"] == pytest.approx([0.2, 0.97])
    assert s["y"] == [1.0, 0.5]
    assert all(low <= y <= high for low, y, high in zip(s["low"], s["y"], s["high"]))


@pytest.mark.slow
def test_confidence_rests_on_the_images_it_gets_right(subject: Subject) -> None:
    found = confidence(subject)
    rows = found.tables[f"confidence/{NAME}/decisions"]["rows"]
    right = [r for r in rows if r[3]]
    by_name = {s.name: s for s in found.scores}
    assert by_name[f"confidence/{NAME}"].n == len(right)
    assert by_name[f"confidence/{NAME}"].value == pytest.approx(np.mean([r[4] for r in right]), abs=1e-5)
    assert by_name[f"entropy/{NAME}"].value == pytest.approx(np.mean([r[6] for r in right]), abs=1e-5)
    assert by_name[f"calibration_error/{NAME}"].n == len(rows) == 64
    assert len(found.galleries["confidence"]["items"]) > 0


def test_neighbours_leave_the_query_out_and_are_a_brute_force() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    x[7] = 5 * x[3]  # the same direction: still a neighbour of 3, never of itself
    near = neighbours(x, 5)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for i in range(30):
        cosine = unit @ unit[i]
        cosine[i] = -9
        assert i not in near[i]
        assert sorted(cosine[near[i]], reverse=True) == pytest.approx(sorted(cosine, reverse=True)[:5])
    assert near[3, 0] == 7
    assert neighbours(x[:3], 5).shape == (3, 2)
    assert neighbours(x[:1], 5).shape == (1, 0)


def test_share_of_neighbours_and_chance() -> None:
    labels = np.array([0, 0, 1])
    assert same(labels, np.array([[1, 2], [0, 2], [0, 1]])).tolist() == [0.5, 0.5, 0.0]
    assert chance(labels) == pytest.approx(2 / 6)


def test_retrieval_scores_cues_without_a_probe(subject: Subject) -> None:
    found = retrieval(subject)
    assert [s.name for s in found.scores] == ["retrieval/class", "retrieval/shape", "retrieval/texture"]
    items = found.galleries["retrieval"]["items"]
    assert len(items) == 6 * 6
    for row in {i["row"] for i in items}:
        members = [i["of"] for i in items if i["row"] == row]
        assert members[0] == row
        assert row not in members[1:]
        assert len(set(members)) == 6
    assert "probe" not in subject.__dict__


@pytest.mark.slow
def test_coarse_and_fine_by_a_users_map(subject: Subject) -> None:
    with pytest.raises(Unasked, match="--superclasses"):
        coarse_fine(subject)
    kinds = {name: "first" if i < 8 else "second" for i, name in enumerate(subject.train.classes[:12])}
    subject.settings = replace(subject.settings, options={"superclasses": kinds})
    found = coarse_fine(subject)
    coarse, fine = found.scores[:2]
    table = found.tables[f"coarse_fine/{NAME}/decisions"]
    assert coarse.n == fine.n == len(table["rows"]) == 64 * 12 // 16
    truth, said, right, kind, same_kind = (list(c) for c in zip(*[r[1:] for r in table["rows"]]))
    assert [kinds[t] for t in truth] == kind
    assert same_kind == [kinds.get(s, "") == k for s, k in zip(said, kind)]
    assert coarse.value == pytest.approx(np.mean(same_kind))
    assert fine.value == pytest.approx(np.mean(right))
    assert coarse.value >= fine.value


@pytest.mark.slow
def test_embedded_breeds_have_kinds(tmp_path: Path) -> None:
    subject = prepared(tmp_path, [], [])
    found = coarse_fine(subject)
    assert [s.name for s in found.scores] == ["coarse/shapes:fine", "fine/shapes:fine"]
    rows = found.tables["coarse_fine/shapes:fine"]["rows"]
    assert [r[0] for r in rows] == sorted(SUPERCLASSES)
    assert [r[1:3] for r in rows] == [[4, 200]] * 4


@pytest.mark.slow
def test_pairs_are_the_same_for_every_model_and_the_texture_wears_the_query_view(subject: Subject) -> None:
    image = subject.train.image(0)
    views = [pair_views(image, recipe_of(32), np.random.default_rng(4)) for _ in range(2)]
    assert set(views[0]) == {"query", "positive", "patch", "texture"}
    for role in views[0]:
        np.testing.assert_array_equal(views[0][role], views[1][role])
        assert views[0][role].shape == (32, 32, 3)
    wide = pair_views(np.tile(image, (5, 8, 1)), recipe_of(32), np.random.default_rng(5))
    assert wide["texture"].shape == (32, 32, 3)
    grey = [pair_views(image, recipe_of(32), np.random.default_rng(s)) for s in range(40)]

    def is_grey(view: np.ndarray) -> bool:
        return bool((view.max(2) == view.min(2)).all())

    assert any(is_grey(v["query"]) for v in grey)
    assert all(is_grey(v["texture"]) for v in grey if is_grey(v["query"]))


@pytest.mark.slow
def test_similarity_names_all_four_pairs_in_evaluation_mode(subject: Subject) -> None:
    subject.encoder.train()
    before = {k: v.clone() for k, v in subject.encoder.state_dict().items()}
    found = similarity(subject)
    assert [s.name for s in found.scores] == [f"similarity/{p}" for p in PAIRS]
    assert all("evaluation mode" in s.protocol for s in found.scores)
    for series in found.figures["similarity"]["series"]:
        assert len(series["x"]) == 101
        assert sum(series["y"]) == pytest.approx(1)
    assert subject.encoder.training
    assert all((v == before[k]).all() for k, v in subject.encoder.state_dict().items())
    assert len(found.tables["similarity/decisions"]["rows"]) == 160


@pytest.mark.slow
def test_similarity_keeps_to_the_limit(subject: Subject) -> None:
    """The first images of the same order: a smaller limit leaves pairs out and changes none but the random ones."""
    rows = {}
    for limit in (20, 35, 0, 1000):
        subject.settings = replace(subject.settings, limit=limit)
        found = similarity(subject)
        rows[limit] = found.tables["similarity/decisions"]["rows"]
        assert {s.n for s in found.scores} == {len(rows[limit])}
        assert f"{len(rows[limit])} images" in found.scores[0].protocol
    assert [len(r) for r in rows.values()] == [20, 35, 160, 160]
    random = 1 + PAIRS.index("random")
    for few, more in zip(rows[20], rows[35]):
        assert few[0] == more[0]
        assert few[1:random] + few[random + 1 :] == pytest.approx(
            more[1:random] + more[random + 1 :], abs=1e-5
        )
    subject.settings = replace(subject.settings, limit=1)
    with pytest.raises(Unasked, match="raise --limit"):
        similarity(subject)


def test_texture_histogram_has_bins_of_two_and_a_half_points() -> None:
    h = histogram(np.array([0.0, 0.0249, 0.025, 0.5, 1.0]))
    assert len(h["y"]) == 40
    assert (h["y"][0], h["y"][1], h["y"][20], h["y"][39]) == (2, 1, 1, 1)


@pytest.mark.slow
def test_texture_classes_on_copies(tmp_path: Path) -> None:
    subject = prepared(tmp_path, [TRAIN], ["shapes:aligned?n=96&size=32&part=test"])
    subject.given = {}
    found = texture_classes(subject)
    total, enough, none = found.scores
    rows = found.tables["texture_classes"]["rows"]
    assert total.n == sum(r[1] for r in rows) == 96
    assert found.chance["texture_classes/accuracy"] == 1 / 16
    assert enough.value == pytest.approx(np.mean([r[2] > 0.5 for r in rows]))
    assert none.value == pytest.approx(np.mean([r[2] < 2 / 16 for r in rows]))  # twice the chance level
    assert "below 12.5%" in none.protocol
    assert [r[2] for r in rows] == sorted((r[2] for r in rows), reverse=True)
    assert sum(found.figures["texture_classes"]["series"][0]["y"]) == len(rows)


@pytest.mark.slow
def test_classes_are_not_judged_by_a_few_images(subject: Subject) -> None:
    with pytest.raises(
        Unasked, match="at most 4 texture images, and 5 are needed to judge it: raise --limit"
    ):
        texture_classes(subject)


def test_near_chance_is_twice_chance_and_never_below_the_published_bound() -> None:
    assert near_chance_bound(16) == 0.125
    assert near_chance_bound(1000) == 0.025


def test_per_class_says_the_commonest_answer() -> None:
    proba = np.eye(3)[[1, 1, 0, 2, 2]]
    said = Answers(
        "x",
        open_data(TEST),
        np.arange(5),
        np.array([0, 0, 0, 2, 2]),
        proba.argmax(1),
        proba,
        ("a", "b", "c"),
        "p",
    )
    assert [[r[0], r[1], r[2], r[5]] for r in per_class(said)] == [["c", 2, 1.0, "c"], ["a", 3, 1 / 3, "b"]]


def test_superclasses_in_either_form(tmp_path: Path) -> None:
    file = tmp_path / "kinds.json"
    for content in ({"beagle": "dog", "tabby": "cat"}, {"dog": ["beagle"], "cat": ["tabby"]}):
        file.write_text(json.dumps(content))
        assert read_superclasses(file) == {"beagle": "dog", "tabby": "cat"}
    for bad, why in (({"dog": ["x"], "cat": ["x"]}, "both"), ([], "not a map"), ({"dog": 3}, "neither")):
        file.write_text(json.dumps(bad))
        with pytest.raises(UserError, match=why):
            read_superclasses(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_superclasses(tmp_path / "none.json")


def test_the_dogs_of_imagenet() -> None:
    dogs = read_superclasses(Path("imagenet-dogs"))
    ids = sorted(name for name in dogs if name.startswith("n"))
    assert len(ids) == 118
    assert (ids[0], ids[-1]) == ("n02085620", "n02113978")  # Chihuahua, Mexican hairless
    assert [int(name) for name in dogs if name.isdigit()] == list(range(151, 269))
    assert set(dogs.values()) == {"dog"}
    assert len(set(ids) & set(read_list("imagenet100"))) == 19
    assert "n02114367" not in dogs  # the timber wolf is no dog


def test_dogs_from_the_verb(tmp_path: Path) -> None:
    """Two breeds and a wolf: coarse counts a breed taken for the other as right, fine does not; wolves are left out."""
    kinds = ("n02085620", "n02113978", "n02114367")
    images, train = (
        photos(tmp_path / "set", 4, classes=kinds),
        photos(tmp_path / "train", 4, classes=kinds, seed=1),
    )
    out = tmp_path / "out"
    audit(MODEL, out=str(out), train=[str(train)], test=[str(images)], only="coarse_fine", size=32,
          superclasses="imagenet-dogs")  # fmt: skip
    document = json.loads((out / "audit.json").read_text())
    found = {s["name"]: s for s in document["scores"]}
    assert found["coarse/set"]["n"] == found["fine/set"]["n"] == 8
    rows = document["tables"]["coarse_fine/set/decisions"]["rows"]
    assert found["fine/set"]["value"] == np.mean([r[1] == r[2] for r in rows])
    assert found["coarse/set"]["value"] == np.mean([r[2] != "n02114367" for r in rows])
    assert document["tables"]["coarse_fine/set"]["rows"][0][:3] == ["dog", 2, 8]
    assert "--superclasses imagenet-dogs" in document["command"]


def test_nothing_to_ask_is_reported(tmp_path: Path) -> None:
    subject = prepared(tmp_path, [TRAIN], ["shapes:conflict?n=64&size=32"])
    subject.test = []
    for ask in (confidence, saliency):
        with pytest.raises(Unasked, match="labelled test set"):
            ask(subject)
    assert {s.name for s in retrieval(subject).scores} >= {"retrieval/shape", "retrieval/texture"}


def test_own_classifier_answers_with_saliency_and_confidence(tmp_path: Path) -> None:
    """Logits of a class that several outputs stand for are those of their mean probability."""
    head = nn.Linear(4, 5)
    probe = Head(head, {"a": [0, 3], "b": [1], "c": [2, 4]}, "test")
    f = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    logits = features_to_logits(probe, torch.device("cpu"))(f)
    p = probe.predict_proba(f.numpy())
    np.testing.assert_allclose(logits.softmax(1).detach().numpy(), p / p.sum(1, keepdims=True), atol=1e-6)


@pytest.mark.slow
def test_probabilities_of_gathered_outputs_sum_to_one(subject: Subject) -> None:
    subject.answers_by, subject.encoder.head = "head", nn.Linear(subject.encoder.dim, 40)
    rows = {name: [2 * k, 2 * k + 1] for k, name in enumerate(subject.train.classes)}
    subject.settings = replace(subject.settings, class_map=rows)
    found = confidence(subject)
    table = found.tables[f"confidence/{NAME}/decisions"]["rows"]
    assert all(r[5] >= 1 / 16 - 1e-6 for r in table)  # the greatest of sixteen that sum to one
    assert all(r[6] <= math.log(16) + 1e-6 for r in table)
    assert "scaled to sum 1" in found.scores[0].protocol
    assert saliency(subject).scores[0].n == 64


def test_the_probe_as_a_differentiable_function(subject: Subject) -> None:
    f = subject.train_features.features[:20]
    logits = features_to_logits(subject.probe, torch.device("cpu"))(torch.from_numpy(f))
    np.testing.assert_allclose(logits.softmax(1).numpy(), subject.probe.predict_proba(f), atol=1e-5)


@pytest.mark.slow
def test_saliency_keeps_overlays_and_a_row_an_image(subject: Subject) -> None:
    found = saliency(subject)
    rows = found.tables["saliency/decisions"]["rows"]
    assert len(rows) == 64
    area, nats = found.scores
    assert area.value == pytest.approx(np.mean([r[4] for r in rows]), abs=1e-5)
    assert nats.value == pytest.approx(np.mean([r[5] for r in rows]), abs=1e-5)
    assert 0 < nats.value <= math.log(32 * 32)
    items = found.galleries["saliency"]["items"]
    assert len(items) == 48
    right = {r[0]: r[3] for r in rows}
    assert all(right[i["of"]] == (i["badge"] == "right") for i in items)
    assert all((subject.folder / i["image"]).is_file() for i in items)


@pytest.mark.slow
def test_superclasses_from_the_verb(tmp_path: Path) -> None:
    classes = open_data(TEST).classes
    file = tmp_path / "kinds.json"
    file.write_text(json.dumps({"first": list(classes[:4]), "second": list(classes[4:8])}))
    out = tmp_path / "out"
    audit(
        MODEL, out=str(out), train=[TRAIN], test=[TEST], only="coarse_fine", superclasses=str(file), size=32
    )  # fmt: skip
    document = json.loads((out / "audit.json").read_text())
    assert [(s["name"], s["n"]) for s in document["scores"]] == [(f"coarse/{NAME}", 32), (f"fine/{NAME}", 32)]
    assert f"--superclasses {file}" in document["command"]
