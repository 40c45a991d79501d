"""docs/performance.md holds what benchmarks stored, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("row", "run", "performance_page"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_page_is_what_is_stored(benchmarks: None) -> None:
    import performance_page

    assert performance_page.PAGE.read_text(encoding="utf-8") == performance_page.page()


def test_every_benchmark_of_the_list_is_there(benchmarks: None) -> None:
    import performance_page
    import run

    for name in run.BENCHMARKS:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file(), name
    known = {name for names in performance_page.TITLES.values() for name in names}
    assert set(run.BENCHMARKS) == known
    assert {f.stem for f in performance_page.STORED.glob("*.json")} <= known


def test_a_row_says_its_median_its_spread_and_whether_it_met_its_goal(benchmarks: None) -> None:
    from row import Row

    row = Row("a step", "the bare one", [1.01, 1.2, 1.04], goal="≤ 1.03", note="two threads")
    assert row.result() == "1.040 × (1.010 to 1.200, 3 repetitions); two threads"
    assert row.met() is False
    assert Row("a", "b", [1.02]).met() is None
    assert Row("a", "b", [3.0, 2.9, 3.1], goal="≥ 3").met() is True
    assert Row("a", "b", [7.0], "s").result() == "7 s"
    assert Row("a", "b", [12345.6], "images/s").result() == "12,346 images/s"


def test_rows_are_collected_and_stored(
    benchmarks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import performance_page
    import run

    script = (
        "from row import row\nprint('working')\nrow('what | pipe', 'peer', [2.0, 4.0, 3.0], goal='≥ 2')\n"
    )
    (tmp_path / "step.py").write_text(script)
    for name in ("row.py",):
        (tmp_path / name).write_text((ROOT / "benchmarks" / name).read_text())
    monkeypatch.setattr(run, "HERE", tmp_path)
    for module in (run, performance_page):
        monkeypatch.setattr(module, "STORED", tmp_path / "stored")
    monkeypatch.setattr(performance_page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["run.py", "step"])
    run.main()
    stored = json.loads((tmp_path / "stored" / "step.json").read_text())
    assert stored["rows"][0]["values"] == [2.0, 4.0, 3.0]
    assert stored["command"] == "python benchmarks/step.py --negatives"
    page = (tmp_path / "page.md").read_text()
    assert "| what \\| pipe | peer | 3 × (2 to 4, 3 repetitions) | ≥ 2: met |" in page
    assert "working" in capsys.readouterr().out

    (tmp_path / "step.py").write_text("raise SystemExit(3)\n")
    run.main()
    assert json.loads((tmp_path / "stored" / "step.json").read_text()) == stored, "a failure stores nothing"
