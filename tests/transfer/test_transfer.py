"""cuewise transfer: suites, cells that are measured once, differences, the report."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, transfer
from cuewise.suites import run, suite

MODELS = ["cuewise/resnet-tiny?width=8", "cuewise/resnet-tiny?width=16"]
FINE = '{name: a, probe: knn, k: 3, train: "shapes:fine?n=64&size=32", test: "shapes:fine?n=32&size=32&part=test"}'
TASKS = """
- {name: pixels, probe: segment, train: "shapes:scenes?n=12&size=32", test: "shapes:scenes?n=8&size=32&part=test", size: 32}
- {name: fine, probe: knn, k: 3, train: "shapes:fine?n=64&size=32", test: "shapes:fine?n=32&size=32&part=test"}
- {name: boxes, probe: detect, body: c4, steps: 1, train: "shapes:scenes?n=8&size=32", size: 32,
   test: "shapes:scenes?n=8&size=32&part=test"}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("transfer")
    (place / "tasks.yaml").write_text(TASKS)
    models = [MODELS[0], "cuewise/vit-tiny?patch=4"]
    result = transfer(*models, suite=place / "tasks.yaml", out=place / "out", name=["cnn", "vit"])
    return place, result


@pytest.mark.slow
def test_one_table_of_tasks_and_encoders(done: tuple[Path, dict[str, Any]]) -> None:
    place, result = done
    table = result["comparison"]
    assert table["columns"] == ["task", "cnn", "vit"]
    assert [r[0] for r in table["rows"]] == [
        "pixels: miou",
        "fine: top1",
        "boxes: voc07_ap50",
        "boxes: coco_ap",
    ]
    document = json.loads((place / "out/transfer.json").read_text())
    first, fine, boxes, _ = document["rows"]
    assert first["differences"][0] is None
    assert first["differences"][1]["protocol"] == "paired_by_image"
    assert (
        fine["differences"][1]["protocol"] == "paired_by_image_and_draw"
    )  # a linear probe: its training images too
    value = first["values"][1]["value"] - first["values"][0]["value"]
    assert first["differences"][1]["value"] == pytest.approx(value)
    assert "--body c4 needs a ResNet" in boxes["failed"][1]
    assert boxes["values"][1] is None
    page = (place / "out/report.html").read_text()
    assert "vit has random weights" in page
    assert "c4 needs a ResNet" in page
    assert "vit is above cnn in" in page
    assert "data:image/" in page


@pytest.mark.slow
def test_a_finished_cell_is_not_measured_again(
    done: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, before = done
    asked = []

    def refuse(request: Any, model: str, *args: Any, **more: Any) -> Any:
        asked.append((request.kind.name, model))
        raise UserError("not again")

    monkeypatch.setattr(run, "measure_once", refuse)
    names = ["cnn", "vit"]
    again = transfer(
        MODELS[0], "cuewise/vit-tiny?patch=4", suite=place / "tasks.yaml", out=place / "out", name=names
    )
    assert asked == [("detect", "cuewise/vit-tiny?patch=4")]  # the one that could not be measured
    assert str(again["comparison"]) == str(before["comparison"])  # NaN and all
    (place / "tasks.yaml").write_text(TASKS.replace("k: 3", "k: 5"))
    transfer(MODELS[0], suite=place / "tasks.yaml", out=place / "out", name=["cnn"])
    assert asked[1:] == [("knn", MODELS[0])]  # another setting is another cell
    (place / "tasks.yaml").write_text(TASKS)


@pytest.mark.slow
def test_the_small_suite_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = copy.deepcopy(suite.SMALL)
    for task in tiny:
        for key in ("train", "test"):
            task[key] = re.sub(r"n=\d+", "n=16", task[key])
        if task["probe"] == "detect":
            task["epochs"] = 1
        task["size"] = 32
    monkeypatch.setitem(suite.SUITES, "small", tiny)
    result = transfer(*MODELS, out=tmp_path / "out")
    assert [r[0].partition(":")[0] for r in result["comparison"]["rows"]] == [
        "boxes", "boxes", "pixels", "fine grain", "unseen textures",
    ]  # fmt: skip
    assert len(result["scores"]) == 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be a list of tasks"),
        ("a: 1", "must be a list of tasks"),
        ("- 3", "task 1 must be a mapping"),
        ("- {name: a, train: shapes}", "task 1 has no 'probe'"),
        ("- {name: a, probe: knn, train: shapes, kk: 3}", "--kk has no meaning for the probe knn"),
        ("- {name: a, probe: nun, train: shapes}", "no probe 'nun'"),
        ("- {name: a, probe: knn, train: shapes, size: big}", "size 'big' must be a number"),
        (
            "- {name: a, probe: knn, train: shapes}\n- {name: a, probe: knn, train: shapes}",
            "two tasks are called 'a'",
        ),
        ("- [", "cannot be read"),
        (
            f"- {FINE}\n- {{name: b, probe: knn, train: shapes, test: nowhere/x}}",
            r"task 2 \(b\): nowhere/x: there is no such",
        ),
        (
            f"- {FINE}\n- {{name: b, probe: segment, train: shapes, masks: [nowhere]}}",
            r"task 2 \(b\): nowhere: there",
        ),
        (
            f"- {FINE}\n- {{name: b, probe: finetune, train: shapes, val: nowhere}}",
            r"task 2 \(b\): nowhere: there",
        ),
        (
            f"- {FINE}\n- {{name: b, probe: multilabel, train: shapes, labels: [no.csv]}}",
            "cannot read the labels no.csv",
        ),
        (f"- {FINE}\n- {{name: b, probe: knn, train: shapes, class_map: no.json}}", "no class map no.json"),
    ],
)
def test_suites_are_checked_first(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(UserError, match=why):
        transfer(MODELS[0], suite=tmp_path / "t.yaml", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_calls_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no MODEL given"):
        transfer(out=tmp_path / "out")
    with pytest.raises(UserError, match="cannot be read"):
        transfer(MODELS[0], suite=tmp_path / "none.yaml", out=tmp_path / "out")
    with pytest.raises(UserError, match="2 names for 1 models"):
        transfer(MODELS[0], out=tmp_path / "out", name=["a", "b"])
