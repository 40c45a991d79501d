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
    for name in ("row", "run", "performance_page", "growth_page"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_page_is_what_is_stored(benchmarks: None) -> None:
    import performance_page

    assert performance_page.PAGE.read_text(encoding="utf-8") == performance_page.page()


def test_the_time_in_the_readme_is_what_is_stored(benchmarks: None) -> None:
    import performance_page

    text = performance_page.README.read_text(encoding="utf-8")
    assert performance_page.AUDIT_TIME.search(text)
    assert text == performance_page.readme()


def test_the_page_of_growth_is_what_is_stored(benchmarks: None) -> None:
    import performance_page
    from growth_page import growth_page, growth_svg

    growth = performance_page.stored()["growth"]
    assert performance_page.GROWTH.read_text(encoding="utf-8") == growth_page(growth)
    assert performance_page.CURVES.read_text(encoding="utf-8") == growth_svg(growth)


def test_the_extrapolation_is_arithmetic(benchmarks: None) -> None:
    """Twice the operations, twice the published hours and half the images per second."""
    from growth_page import beyond, curves
    from row import Row

    rows = [
        Row("a step of moco, ResNet-50 at 224 px", "counted", [30.0], "GFLOP per image"),
        Row("a step of looc, two left out, ResNet-50 at 224 px", "counted", [60.0], "GFLOP per image"),
        Row("photographs made into views", "one core", [400.0, 500.0, 600.0], "images/s"),
        Row("time per image, batch size: 64", "32", [0.9, 0.7, 0.8]),
        Row("time to open a zip, images: 4,000", "1,000", [2.0]),
    ]
    text = beyond(rows)
    words = " ".join(text.split())
    rate = 1_281_167 * 200 / 53 / 3600  # 1,343 images/s
    assert f"{rate:,.0f} images/s, or {rate / 8 * 30 / 1000:.1f} TFLOP/s per GPU" in words
    assert f"| moco | 30.0 | 53 hours | {rate:,.0f} | 3 |" in text
    assert f"| looc, two left out | 60.0 | 106 hours | {rate / 2:,.0f} | 2 |" in text
    assert curves(rows) == {
        "batch size": [("32", 32, 1.0), ("64", 64, 0.8)],
        "time to open a zip, images": [("1,000", 1000, 1.0), ("4,000", 4000, 2.0)],
    }


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
