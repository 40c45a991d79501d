"""`probe detect`: a score whose resamples are all equal claims no certainty; classes that do not count are a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cuewise.data import Boxes, Dataset, open_data
from cuewise.probes.dense.boxes_ap import Detections, mean_ap, rank
from cuewise.probes.dense.resample import ALL_EQUAL, resamples, with_interval
from cuewise.probes.detect import judge
from cuewise.probes.task import Task
from tests.probes.object_sets import write_coco, write_voc

BOTH = "classes that are not in both sets and do not count"


class Says:
    """A detector that finds every object, or none, or every other one; `names` are its trained classes."""

    protocol = "said"

    def __init__(self, finds: str, *names: str) -> None:
        self.finds, self.names = finds, names

    def predict(self, data: Dataset, label: str) -> tuple[list[int], list[Detections], list[Boxes]]:
        number = [self.names.index(c) if c in self.names else -1 for c in data.object_classes]
        true, found = [], []
        for i in range(len(data)):
            boxes = data.facts(i).boxes
            assert boxes is not None
            kept = np.array([number[k] for k in boxes.classes], np.int64)
            true.append(Boxes(boxes.corners[kept >= 0], kept[kept >= 0]))
            given = {"all": 1, "none": 0, "some": int(i % 3 > 0)}[self.finds] * len(true[-1])
            said = true[-1].select(np.arange(given))
            found.append(Detections(said.corners, said.classes, np.ones(given, np.float32)))
        return list(range(len(data))), found, true


def judged(data: Dataset, finds: str, *names: str) -> tuple[Task, list[Any]]:
    task: Any = Task(None, ["train"], ["test"])  # type: ignore[arg-type]
    detector: Any = Says(finds, *names)
    return task, judge(task, detector, "test", data, 8)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return open_data(str(write_voc(tmp_path_factory.mktemp("sets") / "voc")))


@pytest.mark.parametrize(("finds", "value"), [("none", 0.0), ("all", 1.0)])
def test_equal_resamples_claim_no_certainty(data: Dataset, finds: str, value: float) -> None:
    _, scores = judged(data, finds, "disc", "square")
    expected = stats.binomtest(int(value * 12), 12).proportion_ci(0.95, method="wilson")
    for score in scores:
        assert (score.value, score.n) == (pytest.approx(value), 12)
        assert (score.low, score.high) == pytest.approx((expected.low, expected.high))
        assert score.high - score.low > 0.2
        assert score.protocol.endswith("; interval by Wilson over images, as all resamples are equal")


def test_the_bootstrap_stays_where_resamples_differ(data: Dataset) -> None:
    detector: Any = Says("some", "disc", "square")
    _, found, true = detector.predict(data, "")
    rankings = [rank(found, true, k) for k in range(2)]
    draws = np.stack([mean_ap(rankings, w) for w in resamples(12, 0)])
    task, scores = judged(data, "some", "disc", "square")
    score = next(s for s in scores if s.name == "voc07_ap50/test")
    expected = with_interval(score.name, float(mean_ap(rankings)[0]), draws[:, 0], 12, score.protocol)
    assert score == expected
    assert ALL_EQUAL not in score.protocol
    assert 0 < score.value < 1
    assert score.low < score.value < score.high
    np.testing.assert_array_equal(task.draws[score.name], draws[:, 0])


def test_intervals_of_draws() -> None:
    unknown = with_interval("a", 0.0, np.array([np.nan, 0.0, 0.0]), 20, "p")
    assert (unknown.low, unknown.high) == pytest.approx((0.0, 0.1611), abs=1e-4)
    between = with_interval("a", 0.55, np.full(9, 0.55), 3, "p")  # one image has all objects
    assert between.low < 0.55 < between.high
    assert between.value == 0.55
    nothing = with_interval("a", float("nan"), np.full(9, np.nan), 3, "p")
    assert np.isnan(nothing.value)
    assert (nothing.low, nothing.high, nothing.protocol) == (0.0, 1.0, "p")  # nothing is known
    assert with_interval("a", 0.0, np.zeros(9), 1, "p").high > 0.7
    moved = np.linspace(0.2, 0.4, 9)
    assert ALL_EQUAL not in with_interval("a", 0.3, moved, 9, "p").protocol


def test_classes_that_do_not_count_are_a_warning(data: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    task, _ = judged(data, "all", "disc", "kite", "tree")
    (line,) = [line for line in capsys.readouterr().err.splitlines() if BOTH in line]
    assert line == (
        "WARNING: test: 1 of 3 classes count (of those trained on); give a --test with boxes of the others; "
        f"{BOTH}: kite, tree, square"
    )
    assert task.tests[0]["left_out_classes"] == ["kite", "tree", "square"]
    assert task.tests[0]["images"] == 12
    judged(data, "all", "disc")
    assert (
        f"WARNING: test: 1 of 1 classes count (of those trained on); {BOTH}: square\n"
        in capsys.readouterr().err
    )
    judged(data, "all", "disc", *(f"c{k}" for k in range(30)))
    assert "1 of 31 classes count" in (said := capsys.readouterr().err)
    assert "c19, and 11 more\n" in said
    judged(data, "all", "disc", "square")
    assert BOTH not in capsys.readouterr().err


def test_a_class_without_a_box_in_either_set_is_no_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_coco(tmp_path / "coco")
    content = json.loads(file.read_text())
    content["categories"].append({"id": 9, "name": "kite"})
    for entry in content["annotations"]:
        entry["iscrowd"] = 0
    file.write_text(json.dumps(content))
    whole = open_data(f"{file}?images={tmp_path}/coco/images")
    assert whole.object_classes == ("disc", "square", "kite")
    judged(whole, "all", "disc", "square")
    assert BOTH not in capsys.readouterr().err
    judged(whole.select([0, 2]), "all", "disc")  # the squares are on the other images
    assert BOTH not in capsys.readouterr().err
