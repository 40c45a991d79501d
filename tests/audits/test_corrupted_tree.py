"""The corruption audit on images that lie on disk as ImageNet-C does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuewise import UserError, audit
from tests.probes.test_published import MODEL, paint, tree


@pytest.mark.slow
def test_a_tree_is_recognised_and_scored(tmp_path: Path) -> None:
    train, test = paint(tmp_path / "train", 0), paint(tmp_path / "test", 1)
    where = tree(tmp_path / "c", test, True, {"fog": (1, 5), "jpeg_compression": (1, 5)})
    found = audit(
        MODEL,
        train=str(train),
        test=[str(test), str(where)],
        only="corruption",
        out=tmp_path / "out",
        size=16,
    )
    scores = {s["name"]: s for s in found["scores"]}
    assert set(scores) == {f"corruption/{part}accuracy" for part in
                           ("", "weather/", "digital/", "severity_1/", "severity_5/", "hard/", "all19/")}  # fmt: skip
    assert scores["corruption/severity_1/accuracy"]["value"] == 1.0
    assert scores["corruption/severity_5/accuracy"]["value"] < 1.0
    assert scores["corruption/accuracy"]["n"] == 18
    document = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert any(t["role"].startswith("corrupted (") for t in document["data"]["test"])
    rows = document["tables"]["corruption"]["rows"]
    assert [row[0] for row in rows] == ["fog", "jpeg compression"]
    assert rows[0][3] is None  # severity 2 is not there
    again = audit(
        MODEL, train=str(train), test=[f"corrupted={where}"], only="corruption", out=tmp_path / "two", size=16
    )
    assert {s["name"]: s["value"] for s in again["scores"]} == {k: s["value"] for k, s in scores.items()}


def test_a_set_that_is_none_is_refused(tmp_path: Path) -> None:
    train, test = paint(tmp_path / "train", 0), paint(tmp_path / "test", 1)
    with pytest.raises(UserError, match="do not lie in corruption/severity/class"):
        audit(MODEL, train=str(train), test=[f"corrupted={test}"], only="corruption", out=tmp_path / "out")
