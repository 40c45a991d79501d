"""What each probe does by itself: the optimum is the optimum, the papers' schedules are theirs, splits do not leak."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cuewise.encoders import load_encoder
from cuewise.errors import UserError
from cuewise.probes import FewShotProbe, KNNProbe, LinearProbe, RotationProbe, SGDProbe
from cuewise.probes.probe import held_out, top_hits
from cuewise.probes.rotation import Turned, in_all_angles
from cuewise.probes.sgd import PRESETS, Schedule
from cuewise.probes.solve import standardiser
from cuewise.probes.tunings import TUNINGS, tuning


def blobs(n: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(4, 12)) * 2
    y = rng.integers(0, 4, n)
    return (centres[y] + rng.normal(size=(n, 12)) * spread).astype(np.float32), y


def test_linear_is_at_the_optimum() -> None:
    """The gradient of the regularised loss vanishes there, computed in numpy from the definition."""
    X, y = blobs(200, 3, spread=3.0)
    l2 = 0.01
    fitted = LinearProbe(l2=(l2,), iterations=500).fit(X, y)
    x = (X - X.mean(0)) / X.std(0)
    residual = fitted.predict_proba(X) - np.eye(4)[y]
    W = fitted.coef_.numpy()
    gradient = np.vstack([x.T @ residual / len(x) + l2 * W[:-1], residual.mean(0)])
    assert np.abs(gradient).max() < 1e-3
    assert fitted.l2_ == l2
    assert fitted.protocol == "linear_lbfgs_standardised_l2_0.01"


def test_the_optimum_does_not_depend_on_the_sweep() -> None:
    """Warm starts save time and change nothing."""
    X, y = blobs(200, 3, spread=3.0)
    swept = LinearProbe(iterations=500).fit(X, y)
    alone = LinearProbe(l2=(swept.l2_,), iterations=500).fit(X, y)
    np.testing.assert_allclose(swept.predict_proba(X), alone.predict_proba(X), atol=2e-3)


def test_regularisation_is_chosen_on_held_out_rows() -> None:
    X, y = blobs(60, 4, spread=6.0)  # noisy and small: the loosest choice would overfit
    assert LinearProbe().fit(X, y).l2_ > 1e-4


def test_scores_do_not_depend_on_the_scale_of_features() -> None:
    X, y = blobs(200, 3, spread=2.0)
    scales = np.logspace(-3, 3, 12).astype(np.float32)
    one, two = LinearProbe().fit(X, y).predict(X), LinearProbe().fit(X * scales, y).predict(X * scales)
    assert (one == two).mean() > 0.99


def test_a_feature_that_is_dead_in_training_cannot_blow_up_in_testing() -> None:
    X, y = blobs(100, 5)
    X[:, 0] = 0.1  # whose mean is not exactly 0.1 in single precision
    assert standardiser(X).factor[0] == 0
    probe = LinearProbe().fit(X, y)
    other = X.copy()
    other[:, 0] = 5.0
    np.testing.assert_array_equal(probe.predict_proba(other), probe.predict_proba(X))


def test_presets_are_the_published_ones() -> None:
    assert PRESETS["ns"] == Schedule((10.0,), 128, 60, (30, 40, 50), momentum=0.9, weight_decay=0.0)
    assert PRESETS["moco"] == Schedule((30.0,), 256, 100, (60, 80), momentum=0.9, weight_decay=0.0)
    assert PRESETS["looc"] == Schedule((30.0,), 256, 200, (120, 160), momentum=0.9, weight_decay=0.0)
    assert PRESETS["frozen_conv"].conv
    for name, schedule in PRESETS.items():
        said = SGDProbe(name).protocol
        assert name in said
        assert f"epochs{schedule.epochs}" in said
    with pytest.raises(UserError, match="no preset 'nope'"):
        SGDProbe("nope").fit(*blobs(20, 1))


def test_sgd_takes_the_steps_that_the_schedule_says() -> None:
    """Two epochs of one full batch, a drop in between: by hand."""
    X, y = blobs(16, 1)
    schedule = Schedule((0.5,), 16, 2, (1,))
    probe = SGDProbe(schedule=schedule, seed=7).fit(X, y)
    W = np.zeros((13, 4))
    W[:-1] = torch.zeros(12, 4).normal_(0, 0.01, generator=torch.Generator().manual_seed(7)).numpy()
    x, velocity = np.hstack([X, np.ones((16, 1))]), 0.0
    for lr in (0.5, 0.05):
        z = np.exp(x @ W)
        velocity = 0.9 * velocity + x.T @ (z / z.sum(1, keepdims=True) - np.eye(4)[y]) / 16
        W = W - lr * velocity
    np.testing.assert_allclose(probe.coef_.numpy(), W, atol=1e-4)


def test_a_rate_is_chosen_on_held_out_rows() -> None:
    X, y = blobs(120, 2)
    probe = SGDProbe(schedule=Schedule((1e-6, 0.1), 32, 20, (10,))).fit(X, y)
    assert probe.lr_ == 0.1
    assert "lr1e-06|0.1" in probe.protocol


def test_held_out_parts_are_stratified_and_keep_images_together() -> None:
    y = np.array([0] * 10 + [1] * 5 + [2] * 2 + [3])
    rest, held = held_out(y, np.random.default_rng(0))
    assert sorted([*rest, *held]) == list(range(len(y)))
    assert np.bincount(y[held], minlength=4).tolist() == [2, 1, 1, 0]  # a class keeps at least one row
    images = np.repeat(np.arange(9), 4)
    rest, held = held_out(np.tile(np.arange(4), 9), np.random.default_rng(0), groups=images)
    assert not set(images[rest]) & set(images[held])
    assert np.bincount(images[held]).max() == 4
    assert len(set(images[held])) == 2


def test_knn_votes_by_hand() -> None:
    X = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    p = KNNProbe(k=2, temperature=0.5).fit(X, np.array([0, 1, 1])).predict_proba(X[:1] * 5)
    a, b = np.exp(1 / 0.5), np.exp(0.8 / 0.5)
    np.testing.assert_allclose(p, [[a / (a + b), b / (a + b)]], rtol=1e-5)
    assert KNNProbe(7, 0.1).protocol == "knn7_t0.1"
    for k, t in ((0, 0.07), (5, 0.0)):
        with pytest.raises(UserError, match="above 0"):
            KNNProbe(k, t).fit(X, np.array([0, 1, 1]))


def test_knn_in_chunks_is_knn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(100, 1, spread=3.0)
    whole = KNNProbe(k=9).fit(X, y).predict_proba(X)
    monkeypatch.setattr("cuewise.probes.knn.SIMILARITIES", 700)
    np.testing.assert_allclose(KNNProbe(k=9).fit(X, y).predict_proba(X), whole, atol=1e-6)


def test_fewshot_draws_n_of_every_class_anew_in_each_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(80, 1)
    X[:, 0] = np.arange(80)  # tells the row
    drawn: list[np.ndarray] = []

    def note(self, x, t, classes, trial):  # type: ignore[no-untyped-def]
        rows = x[:, 0].numpy().astype(int)
        np.testing.assert_array_equal(y[rows], t)
        drawn.append(rows)
        return torch.zeros(13, classes)

    monkeypatch.setattr(FewShotProbe, "_train", note)
    FewShotProbe(shots=4, trials=10).fit(X, y)
    assert len(drawn) == 10
    for rows in drawn:
        assert np.bincount(y[rows]).tolist() == [4, 4, 4, 4]
        assert len(set(rows)) == 16
    assert len({tuple(sorted(r)) for r in drawn}) == 10


@pytest.mark.slow
def test_fewshot_interval_is_that_of_the_trials() -> None:
    X, y = blobs(200, 1, spread=3.0)
    probe = FewShotProbe(shots=2, iterations=60).fit(X, y)
    test, truth = blobs(100, 2, spread=3.0)
    each = [top_hits(p, truth).mean() for p in probe._each(test)]
    score = probe.score(test, truth)
    assert score.n == 10
    assert score.value == pytest.approx(np.mean(each))
    assert score.high - score.value == pytest.approx(1.96 * np.std(each, ddof=1) / np.sqrt(10), rel=1e-3)
    assert probe.protocol == "fewshot2_trials10_adam_lr0.03_60iterations"
    assert FewShotProbe().protocol == "fewshot5_trials10_adam_lr0.03_250iterations"


def test_images_are_turned_after_the_crop_exactly() -> None:
    torch.manual_seed(0)
    encoder = load_encoder("cuewise/resnet-tiny?width=8", size=16)
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    with torch.no_grad():
        features = Turned(encoder)(encoder.normalise(torch.from_numpy(images))).numpy()
        X, y, groups = in_all_angles(features)
        for row in range(8):
            turned = np.rot90(images[groups[row]], y[row]).copy()
            alone = encoder(encoder.normalise(torch.from_numpy(turned)[None]))[0]
            np.testing.assert_allclose(X[row], alone, atol=1e-4)
    assert y.tolist() == [0, 1, 2, 3] * 2
    assert groups.tolist() == [0] * 4 + [1] * 4


def test_rotation_interval_counts_images_not_rows() -> None:
    rng = np.random.default_rng(0)
    X, y, groups = in_all_angles(rng.normal(size=(40, 4 * 6)).astype(np.float32))
    probe = RotationProbe().fit(X, y, groups)
    assert probe.score(X, y).n == 40
    assert "split_by_image" in probe.protocol


def test_fine_tuning_presets() -> None:
    assert TUNINGS["clean"].lr == (0.01,)
    assert (TUNINGS["clean"].epochs, TUNINGS["clean"].drops) == (60, (30,))
    assert (TUNINGS["clean"].batch_size, TUNINGS["clean"].weight_decay) == (256, 1e-4)
    assert TUNINGS["transfer"].lr == (0.01, 0.03, 0.1)
    assert (TUNINGS["transfer"].epochs, TUNINGS["transfer"].drops) == (100, ())
    assert (TUNINGS["voc"].lr, TUNINGS["voc"].iterations) == ((0.003,), 90_000)
    changed = tuning("voc", ("voc",), epochs=3, lr=0.1)
    assert (changed.epochs, changed.iterations, changed.lr) == (3, None, (0.1,))
    with pytest.raises(UserError, match="no preset 'ns'"):
        tuning("ns", ("transfer", "clean"))
    with pytest.raises(UserError, match="--lr must be above 0"):
        tuning("clean", ("clean",), lr=-1.0)
    assert [TUNINGS["clean"].factor(0, 1, e) for e in (0, 29, 30)] == [1.0, 1.0, 0.1]
    assert [round(TUNINGS["transfer"].factor(s, 100, 0), 6) for s in (0, 50, 100)] == [1.0, 0.5, 0.0]
    voc = TUNINGS["voc"]
    assert [voc.factor(s, 90_000, 0) for s in (0, 4_999, 5_000, 89_999)] == [1.0, 1.0, 0.5, 0.5**17]
    assert (voc.clip, voc.scale, voc.fixed_norm, voc.crops, voc.weight_decay) == (
        10.0,
        (0.1, 0.5),
        True,
        10,
        1e-6,
    )
    assert (voc.recipe(64).scale, voc.recipe(64).ratio, voc.recipe(64).size) == ((0.1, 0.5), (1.0, 1.0), 64)
