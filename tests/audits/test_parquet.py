"""scores.parquet and decisions.parquet: the numbers of audit.json as tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cuewise.audits import parquet

SCORES = [
    {"name": "shape_bias", "value": 0.25, "low": 0.1, "high": 0.4, "n": 40, "protocol": "probe"},
    {"name": "nothing", "value": None, "low": None, "high": None, "n": 0, "protocol": "probe"},
]
DOCUMENT: dict[str, Any] = {
    "model": {"name": "mine"},
    "scores": SCORES,
    "tables": {
        "shape_bias/decisions": {
            "columns": ["image", "response"],
            "rows": [["a\udcff.png", "cat"], ["b", None]],
        },
        "saliency/x/decisions": {"columns": ["image", "correct", "area"], "rows": [["a", True, 1]]},
        "shape_bias/classes": {"columns": ["class"], "rows": [["cat"]]},
    },
}


@pytest.fixture(autouse=True)
def _asked_anew() -> None:
    parquet._can_write.cache_clear()


def test_tables_hold_what_audit_json_holds(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    parquet.write_tables(DOCUMENT, tmp_path)
    scores = arrow.read_table(tmp_path / "scores.parquet").to_pylist()
    assert scores == [{"model": "mine", **s} for s in SCORES]
    rows = arrow.read_table(tmp_path / "decisions.parquet").to_pylist()
    common = {"model": "mine", "correct": None, "area": None}
    assert rows[0] == {**common, "audit": "shape_bias", "image": "a?.png", "response": "cat"}
    assert rows[2] == {
        **{"model": "mine", "audit": "saliency/x", "image": "a"},
        **{"response": None, "correct": True, "area": 1},
    }
    assert len(rows) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["decisions.parquet", "scores.parquet"]


def test_without_pyarrow_a_line_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    parquet.write_tables(DOCUMENT, tmp_path)
    parquet.write_tables(DOCUMENT, tmp_path)
    assert capsys.readouterr().err.count("pip install 'cuewise[tables]'") == 1
    assert not list(tmp_path.iterdir())
