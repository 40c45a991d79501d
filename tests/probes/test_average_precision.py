"""Mean average precision against its definition in plain loops, and multi-label tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.probes import MultiLabelProbe
from cuewise.probes.average_precision import mean_average_precision
from cuewise.probes.label_table import annotated_labels, read_table, targets


def by_hand(score: list[float], target: list[int], variant: str) -> float:
    """Precision and recall at every threshold, then the devkit's two formulas."""
    points = []
    for threshold in sorted(set(score), reverse=True):
        chosen = [t for s, t in zip(score, target) if s >= threshold and t >= 0]
        if chosen:
            points.append((chosen.count(1) / target.count(1), chosen.count(1) / len(chosen)))
    if variant == "11point":
        return sum(max([p for r, p in points if r >= k / 10 - 1e-9], default=0.0) for k in range(11)) / 11
    area, before = 0.0, 0.0
    for i, (recall, _) in enumerate(points):
        area += (recall - before) * max(p for _, p in points[i:])
        before = recall
    return area


def alone(score: np.ndarray, target: np.ndarray, variant: str = "area") -> float:
    """Of a single class."""
    return mean_average_precision(score[:, None], target[:, None], "map", "p", variant, resamples=0).value


@pytest.mark.parametrize("variant", ["area", "11point"])
@pytest.mark.parametrize("seed", range(20))
def test_against_the_definition(variant: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    score = rng.integers(0, 8, n) / 7 if seed % 2 else rng.random(n)  # with ties and without
    target = rng.choice([-1, 0, 1], n, p=[0.2, 0.5, 0.3])
    target[rng.integers(n)] = 1
    expected = by_hand(score.tolist(), target.tolist(), variant)
    assert alone(score, target, variant) == pytest.approx(expected)


def test_worked_example() -> None:
    score, target = np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 0, 1, 0])
    assert alone(score, target, "area") == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert alone(score, target, "11point") == pytest.approx((6 * 1 + 5 * 2 / 3) / 11)


def test_difficult_images_are_left_out_not_counted_as_wrong() -> None:
    score, target = np.array([0.9, 0.8, 0.7]), np.array([-1, 1, 0])
    assert alone(score, target) == 1.0


def test_equal_scores_do_not_depend_on_the_order() -> None:
    target = np.array([1] * 3 + [0] * 9)
    for order in (slice(None), slice(None, None, -1)):
        assert alone(np.zeros(12), target[order]) == pytest.approx(0.25)


def test_a_class_without_positives_has_no_part_in_the_mean() -> None:
    scores, y = np.random.default_rng(0).random((30, 3)), np.zeros((30, 3), np.int8)
    y[:10, 0] = y[5:9, 2] = 1
    each = [alone(scores[:, c], y[:, c]) for c in (0, 2)]
    found = mean_average_precision(scores, y, "map", "p", resamples=50)
    assert found.value == pytest.approx(np.mean(each))
    assert found.n == 30
    assert found.low < found.value < found.high
    assert found == mean_average_precision(scores, y, "map", "p", resamples=50)
    assert np.isnan(mean_average_precision(scores, np.zeros_like(y), "map", "p").value)


def test_labels_that_do_not_count_teach_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    y = (X[:, :3] > 0).astype(np.int8)
    hidden = y.copy()
    hidden[::3, 1] = -1
    wrong = np.where(hidden == -1, -1, y)
    p = MultiLabelProbe(l2=(0.01,)).fit(X, hidden).predict_proba(X)
    np.testing.assert_array_equal(p, MultiLabelProbe(l2=(0.01,)).fit(X, wrong).predict_proba(X))
    assert (p != MultiLabelProbe(l2=(0.01,)).fit(X, y).predict_proba(X)).any()
    with pytest.raises(UserError, match=r"1 \(present\)"):
        MultiLabelProbe().fit(X, y * 5)


def test_tables(tmp_path: Path, folder: Path) -> None:
    data = open_data(str(folder))
    names = [data.name(i) for i in range(len(data))]
    lines = ["image,labels,difficult", f"{names[0]},red; big thing ,", f'{names[1]},"",red']
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = read_table(tmp_path / "t.csv")
    assert table.classes == ("big thing", "red")
    assert targets(data, np.array([0, 1]), table, table.classes, "x").tolist() == [[1, 1], [0, -1]]
    assert targets(data, np.array([0]), table, ("red", "other"), "x").tolist() == [[1, 0]]
    with pytest.raises(UserError, match=f"1 of 2 images of x are not in its table .* {names[2]!r}"):
        targets(data, np.array([1, 2]), table, table.classes, "x")
    (tmp_path / "t.json").write_text(f'{{"{names[0]}": ["red"], "{names[1]}": []}}')
    assert targets(data, np.array([0, 1]), read_table(tmp_path / "t.json"), ("red",), "x").tolist() == [
        [1],
        [0],
    ]


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("a.csv", "file,tags\nx,y", "has the columns"),
        ("a.csv", "image,labels\nx,a\nx,b", "two rows for 'x'"),
        ("a.csv", "image,labels\n", "names no image"),
        ("a.json", "[1, 2]", "JSON object"),
        ("a.json", "{", "is not JSON"),
    ],
)
def test_bad_tables_are_reported(tmp_path: Path, name: str, text: str, match: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=match):
        read_table(tmp_path / name)


def test_scenes_bring_their_own_table() -> None:
    data = open_data("shapes:scenes?n=20&size=32")
    table = annotated_labels(data)
    assert table is not None
    y = targets(data, np.arange(20), table, table.classes, "scenes")
    np.testing.assert_array_equal(y, data.columns["present"])
    assert (y.sum(1) >= 1).all()
    assert annotated_labels(open_data("shapes?n=5&size=32")) is None


@pytest.mark.parametrize("variant", ["area", "11point"])
def test_the_interval_is_the_spread_of_resampled_images(variant: str) -> None:
    """Also where a resample misses a rare class; the bootstrap is written out here."""
    rng = np.random.default_rng(0)
    n, resamples = 30, 200
    truth = np.stack([rng.random(n) < 0.5, np.arange(n) == 3], 1).astype(np.int64)
    said = (rng.random((n, 2)) + truth / 2).round(1)
    found = mean_average_precision(said, truth, "map", "p", variant, seed=5, resamples=resamples)
    again, draws = np.random.default_rng(5), []
    for _ in range(resamples):
        rows = again.integers(0, n, n)
        each = [alone(said[rows, c], truth[rows, c], variant) for c in range(2) if truth[rows, c].any()]
        draws.append(np.mean(each))
    half = 1.959964 * np.std(draws, ddof=1)
    assert 0 < half < 0.5
    assert found.low == pytest.approx(max(0, found.value - half), abs=1e-6)
    assert found.high == pytest.approx(min(1, found.value + half), abs=1e-6)
