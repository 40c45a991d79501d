"""Head contributions against a loop, entropies by hand, subsets of heads, and the audit of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cuewise import UserError, audit, pretrain
from cuewise.audits.engine import Engine
from cuewise.audits.measured import Measured
from cuewise.audits.pairs import PAIRS, ROLES, PairSettings, pair_views, recipe_of, similarities
from cuewise.data import open_data
from cuewise.encoders import load_encoder
from cuewise.probes import LinearProbe
from cuewise.probes.heads import (
    contributions,
    entropy_bits,
    head_subsets,
    weights_on_features,
)
from cuewise.train.reload import load_method

BLOCKS = {"z0": slice(0, 3), "color": slice(3, 5), "rotation": slice(5, 9)}


def test_contributions_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    w, X, y = rng.normal(size=(9, 4)), rng.normal(size=(30, 9)).astype(np.float32), rng.integers(0, 4, 30)
    found = contributions(w, X, y, BLOCKS)
    for n in range(30):
        parts = []
        for block in BLOCKS.values():
            total = sum(float(w[d, y[n]]) * float(X[n, d]) for d in range(block.start, block.stop))
            parts.append(max(0.0, total))
        expected = [p / sum(parts) for p in parts] if sum(parts) > 0 else [1 / 3] * 3
        np.testing.assert_allclose(found[n], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.sum(1), 1)


def test_a_prediction_that_no_head_speaks_for_is_shared_evenly() -> None:
    found = contributions(-np.ones((9, 1)), np.ones((1, 9), np.float32), np.zeros(1, np.int64), BLOCKS)
    np.testing.assert_allclose(found, 1 / 3)


def test_entropy_is_in_bits() -> None:
    assert entropy_bits(np.full(4, 0.25)) == pytest.approx(2.0)
    assert entropy_bits(np.array([1.0, 0.0, 0.0])) == 0.0
    assert entropy_bits(np.array([0.5, 0.25, 0.25])) == pytest.approx(1.5)


def blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first block alone distinguishes class 0 from 1, the second class 2."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 9)) * 0.3
    X[:, 0] += np.where(y == 0, 3.0, 0.0)
    X[:, 3] += np.where(y == 2, 3.0, 0.0)
    return X.astype(np.float32), y.astype(np.int64)


def test_the_head_that_determines_a_class_gets_its_share() -> None:
    X, y = blobs(400, 0)
    probe = LinearProbe().fit(X, y)
    shares = contributions(weights_on_features(probe), X, y, BLOCKS)
    assert shares[y == 0][:, 0].mean() > 0.8
    assert shares[y == 2][:, 1].mean() > 0.8


def test_weights_on_features_are_the_probe_without_standardising() -> None:
    X, y = blobs(200, 1)
    y = np.where(y == 1, 5, y)  # a gap in the labels
    probe = LinearProbe().fit(X, y)
    logits = X @ weights_on_features(probe)
    ours = logits[:, [0, 2, 5]] - logits[:, [0]]
    theirs = np.log(probe.predict_proba(X)[:, [0, 2, 5]])
    theirs = theirs - theirs[:, [0]]
    np.testing.assert_allclose((ours - ours[0]), (theirs - theirs[0]), rtol=1e-2, atol=1e-2)
    assert weights_on_features(probe)[:, 3].tolist() == [0.0] * 9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("looc") / "run"
    torch.manual_seed(0)
    pretrain(
        "shapes:aligned?n=64&size=32&rho=1",
        out=str(out),
        method="looc",
        leave_out="color,rotation",
        model="cuewise/resnet-tiny?width=8",
        size=32,
        batch_size=16,
        epochs=1,
        workers="0",
        set=["looc.queue=32", "looc.dim=16"],
    )
    return out


TRAIN, TEST = "shapes:aligned?n=160&size=32&rho=1", "shapes:aligned?n=96&size=32&rho=1&part=test"


def audited(model: str, out: Path, only: str) -> dict[str, Any]:
    """audit.json."""
    audit(model, out=out, train=TRAIN, test=TEST, only=only)
    return json.loads((out / "audit.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("space", ["", "#z0+color", "#all"])
def test_the_audit_determines_the_share_of_each_head(run: Path, tmp_path: Path, space: str) -> None:
    document = audited(f"{run}{space}", tmp_path, "heads")
    spaces = ["z0", "color"] if space == "#z0+color" else ["z0", "color", "rotation"]
    scores = {s["name"]: s for s in document["scores"]}
    where = next(iter(scores)).split("/")[-1]
    assert [n for n in scores if "entropy" not in n] == [f"heads/{h}/{where}" for h in spaces]
    shares = [scores[f"heads/{h}/{where}"]["value"] for h in spaces]
    assert sum(shares) == pytest.approx(1.0)
    bits = scores[f"heads/entropy_bits/{where}"]
    assert bits["value"] == pytest.approx(-sum(p * math.log2(p) for p in shares))
    assert 0 <= bits["low"] <= bits["value"] <= bits["high"] <= math.log2(len(spaces)) + 1e-9
    series = document["figures"]["heads"]["series"][0]
    assert series["x"] == spaces
    assert series["y"] == pytest.approx(shares)
    assert sum(document["figures"]["heads/largest"]["series"][0]["y"]) == pytest.approx(1.0)
    json.dumps(document)


@pytest.mark.slow
def test_the_verb_takes_a_space(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    audit(str(run), space="z0+color", out=str(out), train=[TRAIN], test=[TEST], only="heads")
    document = json.loads((out / "audit.json").read_text())
    assert document["model"]["cues"]["space"] == "z0+color"
    assert document["figures"]["heads"]["series"][0]["x"] == ["z0", "color"]
    assert "Which embedding space" in (out / "report.html").read_text()


@pytest.mark.slow
def test_a_model_without_spaces_says_so(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no embedding spaces"):
        audited("cuewise/resnet-tiny?width=8", tmp_path, "heads")
    with pytest.raises(UserError, match="one space has one head"):
        audited(f"{run}#color", tmp_path, "heads")


@pytest.mark.slow
@pytest.mark.parametrize("space", ["", "#rotation"])
def test_similarities_of_a_run_with_spaces(run: Path, tmp_path: Path, space: str) -> None:
    """The invariant head stands for the projector; a chosen space is taken as it is. Cosines by hand, view by view."""
    data = open_data("shapes:aligned?n=24&size=32&rho=1")
    model = Measured("m", load_encoder(f"{run}{space}"), Path(run), engine=Engine(workers=0))
    _, found = similarities(model, data, PairSettings())
    assert model.embedder.where == ("space rotation" if space else "projector output")
    method = load_method(run)
    network = model.encoder if space else nn.Sequential(method.encoder, method.similarity_networks()[0])
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    z: dict[str, list[torch.Tensor]] = {role: [] for role in ROLES}
    with torch.inference_mode():
        for i in order:
            views = pair_views(data.image(i), recipe_of(32), np.random.default_rng((0, i)))
            for role in ROLES:
                x = model.encoder.normalise(torch.from_numpy(views[role])[None])
                z[role].append(torch.nn.functional.normalize(network.eval()(x).float(), dim=1)[0])
    partners = {**z, "random": [z["query"][k - 1] for k in range(len(order))]}
    for pair in PAIRS:
        by_hand = [float(a @ b) for a, b in zip(z["query"], partners[pair])]
        np.testing.assert_allclose(found[pair], by_hand, atol=1e-5)
    document = audited(f"{run}{space}", tmp_path, "similarity")
    assert model.embedder.where in document["scores"][0]["protocol"]


@pytest.mark.slow
def test_subsets_of_heads(run: Path) -> None:
    """The invariant head alone, with each other one, and all: each with a probe of its own."""
    train, test = open_data(TRAIN), open_data(TEST)
    found = head_subsets(str(run), train, test)
    assert list(found) == ["z0", "z0+color", "z0+rotation", "z0+color+rotation"]
    assert all(s.n == 96 and 0 <= s.value <= 1 for s in found.values())
    one = head_subsets(str(run), train, test, [["rotation"]])["rotation"]
    assert one.n == 96
    with pytest.raises(UserError, match="no head 'texture'; there are: z0, color, rotation"):
        head_subsets(str(run), train, test, [["z0", "texture"]])
    with pytest.raises(UserError, match="has no spaces"):
        head_subsets("cuewise/resnet-tiny?width=8", train, test)
