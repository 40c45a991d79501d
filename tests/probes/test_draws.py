"""Intervals of probes: over test images and over training images, the same draws for all models."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cuewise.audits.answerer import Answerer
from cuewise.audits.head import Grouped
from cuewise.probes import KNNProbe, LinearProbe
from cuewise.probes.draws import DRAWS, T95, both_ways, halves, over_both, scatter
from cuewise.probes.probe import top_hits
from cuewise.report.compare import over_draws
from cuewise.report.paired import mcnemar
from cuewise.scores import Z95, Score, proportion

DIM, CLASSES, TRIALS = 12, 4, 30
MEANS = 0.7 * np.random.default_rng(0).standard_normal((2, CLASSES, DIM))
Set = tuple[NDArray[np.float32], NDArray[np.int64]]


def drawn_set(images: int, rng: np.random.Generator, other: bool = False) -> Set:
    """Features of five classes; `other`: of another domain, in which every class has moved."""
    y: NDArray[np.int64] = np.arange(images) % CLASSES
    means = MEANS[0] + 0.86 * MEANS[1] * other
    x = means[y] + 1.3 * rng.standard_normal((images, DIM))
    return x.astype(np.float32), y


def test_the_quantile_is_students() -> None:
    assert pytest.approx(stats.t.ppf(0.975, DRAWS - 1), abs=1e-9) == T95


def test_halves_are_halves_of_each_class() -> None:
    y = np.array([0] * 10 + [1] * 7 + [2])
    found = halves(y, 3)
    assert len(found) == DRAWS
    assert {int((y[r] == 0).sum()) for r in found} == {5}
    assert {int((y[r] == 1).sum()) for r in found} == {3, 4}
    assert {int((y[r] == 2).sum()) for r in found} == {1}
    assert all(len(set(r.tolist())) == len(r) for r in found)
    assert len({r.tobytes() for r in found}) == DRAWS


def test_halves_are_the_same_for_all_models() -> None:
    """They follow from labels and seed; versions of an image stay together."""
    y = np.arange(40) % 4
    assert all((a == b).all() for a, b in zip(halves(y, 1), halves(y.copy(), 1)))
    assert not all(np.array_equal(a, b) for a, b in zip(halves(y, 1), halves(y, 2)))
    groups = np.arange(40) // 4
    for rows in halves(y, 1, groups):
        assert len(rows) == 20
        assert len(set(groups[rows].tolist())) == 5


@pytest.mark.slow
def test_the_interval_covers_the_truth() -> None:
    """The expected accuracy in another domain, over training and test images: the old interval covers it in half the cases."""
    rng = np.random.default_rng(1)
    large, old, new, expected = drawn_set(10_000, rng, other=True), [], [], []
    for _ in range(TRIALS):
        probe = LinearProbe((1e-1,), iterations=20).fit(*drawn_set(60, rng))
        X, y = drawn_set(1000, rng, other=True)
        score = probe.score(X, y)
        old.append(score)
        new.append(over_both(score, [float(top_hits(p, y).mean()) for p in probe.drawn(X)]))
        expected.append(probe.score(*large).value)
    truth = np.mean(expected)
    covers = [np.mean([s.low <= truth <= s.high for s in scores]) for scores in (old, new)]
    assert covers[0] < 0.7
    assert covers[1] >= 0.9


@pytest.mark.slow
def test_a_difference_covers_the_truth() -> None:
    """Two models that are equally good: paired by image alone the interval excludes zero far too often."""
    rng, old, new = np.random.default_rng(2), 0, 0
    for _ in range(TRIALS):
        X, y = drawn_set(60, rng)
        X_test, y_test = drawn_set(2000, rng, other=True)
        noise = [rng.standard_normal((len(x), DIM)).astype(np.float32) for x in (X, X_test)]
        models = [(X + noise[0], X_test + noise[1]), (X + noise[0][::-1], X_test + noise[1][::-1])]
        probes = [LinearProbe((1e-1,), iterations=20).fit(train, y) for train, _ in models]
        hits = [top_hits(p.predict_proba(test), y_test) for p, (_, test) in zip(probes, models)]
        scores = [
            over_both(
                proportion("a", int(h.sum()), len(h), ""),
                [float(top_hits(q, y_test).mean()) for q in p.drawn(t)],
            )
            for p, h, (_, t) in zip(probes, hits, models)
        ]
        paired = mcnemar(hits[0].tolist(), hits[1].tolist())
        found = over_draws(paired, scores[0], scores[1], "a", "b")
        old += paired.low <= 0 <= paired.high
        new += found.low <= 0 <= found.high
    assert old < 0.8 * TRIALS
    assert new >= 0.9 * TRIALS


@pytest.mark.slow
def test_a_probe_on_halves_is_a_probe_on_halves() -> None:
    """The quick solutions answer as probes that are fitted on the halves from nothing."""
    X, y = drawn_set(200, np.random.default_rng(3))
    X_test, _ = drawn_set(400, np.random.default_rng(4), other=True)
    probe = LinearProbe(seed=5).fit(X, y)
    rows = halves(y, 5)
    assert len(probe.drawn(X_test)) == DRAWS
    for p, r in zip(probe.drawn(X_test), rows):
        alone = LinearProbe((probe.l2_,)).fit(X[r], y[r]).predict_proba(X_test)
        assert (p.argmax(1) == alone.argmax(1)).mean() > 0.95
    knn = KNNProbe(k=5).fit(X, y)
    for p, r in zip(knn.drawn(X_test), halves(y, 0)):
        assert np.allclose(p, KNNProbe(k=5).fit(X[r], y[r]).predict_proba(X_test), atol=1e-5)


@pytest.mark.slow
def test_draws_leave_the_probe_as_it_was() -> None:
    X, y = drawn_set(100, np.random.default_rng(3))
    probe, other = LinearProbe().fit(X, y), LinearProbe().fit(X, y)
    probe.drawn(X)
    assert (probe.predict_proba(X) == other.predict_proba(X)).all()
    assert len(pickle.dumps(other)) < X.nbytes  # the training set does not travel
    assert probe.train_ is None
    again = pickle.loads(pickle.dumps(probe))
    assert all((a == b).all() for a, b in zip(again.drawn(X), probe.drawn(X)))


def test_answers_of_draws_are_gathered_as_answers_are() -> None:
    X, y = drawn_set(100, np.random.default_rng(3))
    X[7] = np.nan
    probe = LinearProbe().fit(X[:5].repeat(20, 0) + np.random.default_rng(0).standard_normal((100, DIM)), y)
    answerer = Answerer(Grouped(probe, {"a": [0, 1], "b": [2, 3]}, "names"), ("a", "b"))
    found = answerer.drawn(X)
    assert len(found) == DRAWS
    assert all(a[7] == -1 and set(np.delete(a, 7).tolist()) <= {0, 1} for a in found)


def test_the_interval_is_the_sum_of_squares() -> None:
    values = np.linspace(0.4, 0.6, DRAWS)
    score = over_both(Score("a", 0.5, 0.45, 0.56, 100, "p"), values)
    extra = stats.t.ppf(0.975, DRAWS - 1) * values.std(ddof=1)
    assert score.low == pytest.approx(0.5 - np.hypot(0.05, extra))
    assert score.high == pytest.approx(0.5 + np.hypot(0.06, extra))
    assert score.protocol == "p; interval over test images and 8 draws of the training images"
    assert score.draws == pytest.approx(tuple(values))
    assert over_both(Score("a", 0.5, 0.4, 0.6, 10, "p"), []) == Score("a", 0.5, 0.4, 0.6, 10, "p")
    assert "draws" not in score.as_dict()  # a score in JSON has six keys
    assert scatter([0.5] * (DRAWS - 1)) == 0


def test_resamples_carry_both() -> None:
    """The spread over resamples is that of the test images and of Student's t over the draws."""
    rng = np.random.default_rng(0)
    hits = (rng.random(500) < 0.6).astype(np.float64)
    shift = np.linspace(-0.1, 0.1, DRAWS)
    drawn = hits + shift[:, None]  # every image moves alike: no interaction
    weights = [np.bincount(rng.integers(0, 500, 500), minlength=500) for _ in range(4000)]
    both, alone = both_ways(hits, drawn, weights), both_ways(hits, np.zeros((0, 500)), weights)
    expected = np.hypot(Z95 * alone.std(ddof=1), T95 * shift.std(ddof=1))
    assert Z95 * both.std(ddof=1) == pytest.approx(expected, rel=0.03)
