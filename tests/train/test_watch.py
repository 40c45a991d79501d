"""`pretrain --watch`: an encoder without a classifier, asked by probes while it trains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import cuewise
from cuewise.encoders.load import load_encoder
from cuewise.probes import LinearProbe
from cuewise.report.curves import curve_figures
from cuewise.train.log import read_metrics
from tests.audits.small_models import ENCODER, photos

pytestmark = pytest.mark.slow

WATCHED = ("accuracy", "shape_bias", "sketch", "saliency", "color")
HOW = {"model": ENCODER, "size": 32, "batch_size": 6, "epochs": 2, "workers": "0", "set": ["moco.queue=12"]}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("sets")
    return photos(place / "train"), photos(place / "val", 10, seed=1)


@pytest.fixture(scope="module")
def watched(sets: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "watched"
    cuewise.pretrain(sets[0], out=out, val=sets[1], watch=",".join(WATCHED), watch_every=1, **HOW)
    return out


def test_every_audit_that_is_named_is_in_the_metrics(watched: Path) -> None:
    rows = [r for r in read_metrics(watched / "metrics.jsonl") if any(k.startswith("watch/") for k in r)]
    assert [r["step"] for r in rows] == [0, 3, 6]
    names = {k.removeprefix("watch/").partition("/")[0] for r in rows for k in r if k.startswith("watch/")}
    assert {"linear", "shape_bias", "sketch", "saliency_area", "color"} <= names
    assert all(set(rows[0]) == set(r) for r in rows[1:])


def test_the_numbers_are_those_of_an_audit_of_the_encoder(
    watched: Path, sets: tuple[Path, Path], tmp_path: Path
) -> None:
    last = [r for r in read_metrics(watched / "metrics.jsonl") if "watch/shape_bias" in r][-1]
    found = cuewise.audit(
        str(watched), out=tmp_path / "audit", train=sets[1], only="accuracy,color", limit=400, workers=0
    )
    scores = {s["name"]: s["value"] for s in found["scores"]}
    seen = {k.removeprefix("watch/"): v for k, v in last.items() if k.startswith("watch/")}
    shared = [name for name in seen if name in scores]
    assert any(n.startswith("linear/") for n in shared)
    assert any(n.startswith("color/") for n in shared)
    assert all(seen[n] == pytest.approx(scores[n]) for n in shared)


def test_watching_changes_nothing(watched: Path, sets: tuple[Path, Path], tmp_path: Path) -> None:
    cuewise.pretrain(sets[0], out=tmp_path / "alone", **HOW)
    one, other = (load_encoder(str(p)).backbone.state_dict() for p in (watched, tmp_path / "alone"))
    assert all(torch.equal(one[k], other[k]) for k in one)


def test_the_report_draws_what_was_watched(watched: Path, tmp_path: Path) -> None:
    cuewise.audit(str(watched), out=tmp_path / "audit", only="accuracy", limit=8, workers=0)
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    assert "Shape bias over training" in page
    assert "k-NN accuracy on --val" in page
    rows = read_metrics(watched / "metrics.jsonl")
    drawn = {f["title"]: f["series"][0] for f in curve_figures({"watched": rows}, {})}
    seen = [r for r in rows if "watch/shape_bias" in r]
    series = drawn["Shape bias over training"]
    for ending, name in (("", "y"), ("_low", "low"), ("_high", "high")):
        assert series[name] == pytest.approx([r[f"watch/shape_bias{ending}"] for r in seen], nan_ok=True)
    assert "low" not in drawn["Loss"]
    assert not any("high" in title or "low" in title for title in drawn)


def test_a_probe_is_fitted_wherever_it_is_called() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    outside = LinearProbe().fit(X, y)
    with torch.inference_mode():
        inside = LinearProbe().fit(X, y)
        drawn = inside.drawn(X)
    assert np.allclose(outside.predict_proba(X), inside.predict_proba(X), atol=1e-6)
    assert len(drawn) > 0
