"""What a clue gives away: known answers on made clues."""

from __future__ import annotations

import numpy as np
import pytest

from cuewise.inspection.judge import FOLDS, PENALTIES, crossed, expanded, folds_of, judge

N = 600


def made(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, N)
    noise = rng.standard_normal((N, 5)).astype(np.float32)
    if kind == "linear":
        noise[:, 0] += 3 * labels
    if kind == "crossed":  # no column alone says anything
        noise[:, :2] = rng.uniform(-1, 1, (N, 2))
        labels = (noise[:, 0] * noise[:, 1] > 0).astype(np.int64)
    return noise, labels


def judged(kind: str, seed: int = 0):
    clue, labels = made(kind, seed)
    return judge(clue, labels, np.arange(N), "clue/accuracy", seed)


def test_a_clue_that_determines_the_class_is_found() -> None:
    assert judged("linear").predicts
    assert judged("linear").accuracy.value > 0.7
    assert judged("crossed").predicts  # neither column alone does


@pytest.mark.parametrize("seed", range(8))
def test_noise_determines_nothing(seed: int) -> None:
    found = judged("noise", seed)
    assert not found.predicts
    assert found.accuracy.low <= 0.25 + 0.06
    assert abs(found.shuffled[0] - 0.25) < 0.04


def test_an_unbalanced_set_is_not_determined_by_its_majority() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(N) < 0.1).astype(np.int64)
    found = judge(rng.standard_normal((N, 3)).astype(np.float32), labels, np.arange(N), "x/accuracy")
    assert found.majority > 0.85
    assert not found.predicts


@pytest.mark.slow
def test_copies_stay_in_one_fold_and_determine_nothing() -> None:
    """A clue that identifies the image predicts the label of its copy; with copies apart noise would look like a cue."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(N // 2), 2)
    labels = rng.integers(0, 4, N // 2)[groups]
    clue = rng.standard_normal((N // 2, 200)).astype(np.float32)[groups]
    fold = folds_of(labels, groups, rng)
    assert (fold[::2] == fold[1::2]).all()
    assert set(fold) == set(range(FOLDS))
    assert not judge(clue, labels, groups, "x/accuracy").predicts
    assert judge(clue, labels, np.arange(N), "x/accuracy").predicts  # what the folds protect from


def test_classes_are_spread_over_folds() -> None:
    labels = np.repeat(np.arange(6), 20)
    fold = folds_of(labels, np.arange(120), np.random.default_rng(0))
    assert all((np.bincount(fold[labels == k], minlength=FOLDS) == 4).all() for k in range(6))


def ridge(x: np.ndarray, y: np.ndarray, at: np.ndarray, penalty: float) -> np.ndarray:
    return at @ np.linalg.solve(x.T @ x + penalty * len(x) * np.eye(x.shape[1]), x.T @ y)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_equal_a_ridge_regression_whose_penalty_was_chosen_on_the_next_fold(seed: int) -> None:
    """Neither the fold itself nor the fold that the penalty is chosen on is in the regressions that choose it."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((100, 50)).astype(np.float32)
    labels = (x[:, 0] + 0.7 * rng.standard_normal(100) > 0).astype(np.int64)
    targets = np.eye(2, dtype=np.float32)[labels]
    fold = np.arange(100) % FOLDS
    found = crossed(x, targets, [labels], fold)[:, 0]
    for f in range(FOLDS):
        rows, held = fold == f, fold == (f + 1) % FOLDS
        inner, rest = ~(rows | held), ~rows
        right = [
            (ridge(x[inner], targets[inner], x[held], p).argmax(1) == labels[held]).mean() for p in PENALTIES
        ]
        best = PENALTIES[int(np.argmax(right))]
        assert np.abs(found[rows] - ridge(x[rest], targets[rest], x[rows], best)).max() < 1e-3


def test_missing_values_and_constant_columns_are_allowed() -> None:
    clue = np.ones((50, 3), np.float32)
    clue[:20] = np.nan
    assert np.isfinite(expanded(clue, np.random.default_rng(0))).all()
    labels = np.repeat([0, 1], [20, 30])  # whether a clue is there can be the clue
    assert judge(clue, labels, np.arange(50), "x/accuracy").predicts
