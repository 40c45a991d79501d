"""Probes: the optimum is the optimum, the protocol is named, garbage is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuewise import UserError, probe
from cuewise.probes import KNNProbe, LinearProbe

PROBES = [LinearProbe(), KNNProbe(k=5)]


def blobs(n: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(4, 12)) * 2
    y = rng.integers(0, 4, n)
    return (centres[y] + rng.normal(size=(n, 12)) * spread).astype(np.float32), y


@pytest.mark.parametrize("model", PROBES, ids=lambda p: p.protocol)
def test_contract(model) -> None:  # type: ignore[no-untyped-def]
    before = dict(vars(model))
    X, y = blobs(300, 1)
    assert dict(vars(model)) == before  # an inert constructor
    assert model.fit(X, y) is model
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-4)
    score = model.score(*blobs(200, 2), name="s")
    assert score.value > 0.9
    assert score.low < score.value <= score.high <= 1
    assert score.n == 200
    assert score.protocol == model.protocol
    assert model.score(*blobs(200, 2), k=4).value == 1.0
    again = type(model)(**before).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(p, again)


@pytest.mark.parametrize("model", PROBES, ids=lambda p: p.protocol)
def test_garbage(model) -> None:  # type: ignore[no-untyped-def]
    X, y = blobs(20, 1)
    with pytest.raises(UserError, match="NaN"):
        model.fit(np.where(np.arange(12) == 3, np.nan, X), y)
    with pytest.raises(UserError, match="two classes"):
        model.fit(X, np.zeros(20, int))
    with pytest.raises(UserError, match="20 rows of features but 3 labels"):
        model.fit(X, y[:3])


def test_linear_is_at_the_optimum() -> None:
    """The gradient of the regularised loss vanishes there, computed in numpy from the definition."""
    X, y = blobs(200, 3, spread=3.0)
    l2 = 0.01
    fitted = LinearProbe(l2=(l2,), iterations=500).fit(X, y)
    x = (X - fitted.mean_) / fitted.std_
    residual = fitted.predict_proba(X) - np.eye(4)[y]
    W = fitted.coef_.numpy()
    gradient = np.vstack([x.T @ residual / len(x) + l2 * W[:-1], residual.mean(0)])
    assert np.abs(gradient).max() < 1e-3
    assert fitted.l2_ == l2


def test_regularisation_is_chosen_on_held_out_rows() -> None:
    X, y = blobs(60, 4, spread=6.0)  # noisy and small: the loosest choice would overfit
    assert LinearProbe().fit(X, y).l2_ > 1e-4


def test_a_dead_feature_does_no_harm() -> None:
    X, y = blobs(100, 5)
    X[:, 0] = 7.0
    assert np.isfinite(LinearProbe().fit(X, y).predict_proba(X)).all()


def test_verb(folder: Path) -> None:
    model = "cuewise/resnet-tiny?width=8"
    held = probe("knn", model, train=[str(folder)], k=3)
    assert held["scores"][0]["name"] == "top1/held-out"
    assert held["scores"][0]["protocol"] == "knn3_t0.07"
    assert held["scores"][0]["n"] == 9
    same = probe("knn", model, train=[str(folder)], test=[str(folder)], k=1)
    assert same["scores"][0]["value"] == 1.0  # its own nearest neighbour
    with pytest.raises(UserError, match="no probe 'quadratic'"):
        probe("quadratic", model, train=[str(folder)])
    with pytest.raises(UserError, match="no labels"):
        probe("knn", model, train=[str(folder / "ant")])


def test_classes_that_were_not_trained_are_left_out(folder: Path, tmp_path: Path) -> None:
    for name in ("ant", "zebra"):
        (tmp_path / name).mkdir()
        for file in sorted((folder / "ant").iterdir())[:4]:
            (tmp_path / name / file.name).write_bytes(file.read_bytes())
    result = probe("linear", "cuewise/resnet-tiny?width=8", train=[str(folder)], test=[str(tmp_path)])
    assert result["scores"][0]["n"] == 4
