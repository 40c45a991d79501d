"""docs/results.md: every number and verdict on it follows from the stored values of single seeds."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cuewise.errors import UserError
from cuewise.parser import build_parser
from cuewise.recipes import recipes
from cuewise.studies.labs import SHAPES
from cuewise.studies.results import judged
from cuewise.studies.study import choose, studies
from cuewise.studies.sweep import swept
from cuewise.studies.table import Table
from cuewise.verbs import VERBS
from cuewise.verbs.arguments import several

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(
    r"^\| \[(\S+)\]\(results-details\.md#(\S+)-in-(\S+)\)\. .* \| \*\*([\w ]+)\*\* \| (\d+)(?: × 8 draws)? \| (.*) \|$",
    re.M,
)
NUMBER = re.compile(r"[+-]\d\.\d{3}")


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("results")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def store(pages: ModuleType) -> ModuleType:
    return sys.modules["results_store"]


def document(names: list[str], effect: float, seeds: int = 5) -> dict[str, Any]:
    """A results.json of made-up values; every decisive cell is there, and effect × sign moves it."""
    rng, parts = np.random.default_rng(0), {}
    for name in names:
        study, values = studies()[name], {}
        for arm in study.arms(SHAPES):
            values[arm.name] = {s: {"curve/loss/1": 1.0} for s in range(seeds)}
        for d in (d for c in study.claims for d in c.differences(SHAPES)):
            for n, (arm, quantity) in enumerate(d.cells):
                drawn = 0.5 + (effect * d.sign if n == 0 else 0.0) + 0.01 * rng.standard_normal(seeds)
                for s in range(seeds):
                    values[arm][s].setdefault(quantity, float(drawn[s]))
                    for b in range(8 if quantity == "clean" else 0):
                        values[arm][s].setdefault(
                            f"draw/{b}/{quantity}", float(drawn[s] + 0.01 * rng.standard_normal())
                        )
        parts[name] = judged(study, Table(values), SHAPES)
    return {
        **dict.fromkeys(("cuewise", "precision", "budget_minutes"), None),
        "lab": "shapes", "method": "simclr", "model": "cuewise/resnet-tiny", "size": 32,
        "epochs": dict.fromkeys(names, 6), "seeds": list(range(seeds)), "runs": 10, "worker_seconds": 125.0,
        "data": ["/home/me/sets/tiny.zip?n=3", "shapes:aligned?rho=1"], "sets": {"clean": []},
        "environment": {"time": "2026-01-02T03:04:05+0000", "git": None},
        "command": "cuewise reproduce x --data /home/me/sets/pacs.zip/photo --model timm/a:/home/me/w.pt --out runs/x",
        "warnings": [], "studies": parts,
    }  # fmt: skip


@pytest.fixture
def add(pages: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    """Put a made-up document through `add` and write the pages into tmp_path."""

    def adding(found: dict[str, Any], name: str = "", **how: str) -> Path:
        file = tmp_path / "results.json"
        file.write_text(json.dumps(found))
        pages.add(file, tmp_path / "results", name, **how)
        pages.write(tmp_path / "results", tmp_path)
        return tmp_path

    return adding


def check_page(page: str, stored: Path) -> int:
    """Every row of the glance against an interval and a verdict computed here, from the stored values alone."""
    found = ROW.findall(page)
    for number, name, file, verdict, seeds, text in found:
        document = json.loads((stored / f"{file}.json").read_text())
        lab = importlib.import_module("results_store").Stored(file, document).lab
        arms = document["studies"][name]
        claim = next(c for c in studies()[name].claims if slug(c.number) == slug(number))
        words, shown = [], []
        for d in claim.differences(lab):
            x = d.of(*(np.array(arms[a]["values"][q]) for a, q in d.cells))
            half = (
                stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / len(x) ** 0.5
            )  # 0 where a count never varies
            low, high = x.mean() - half, x.mean() + half
            if any(f"draw/0/{q}" in arms[a]["values"] for a, q in d.cells):
                moved = [
                    d.of(
                        *(
                            np.array(arms[a]["values"].get(f"draw/{b}/{q}", arms[a]["values"][q]))
                            for a, q in d.cells
                        )
                    )
                    for b in range(8)
                ]
                extra = stats.t.ppf(0.975, 7) * np.std([m.mean() for m in moved], ddof=1)
                low, high = (
                    x.mean() - np.hypot(x.mean() - low, extra),
                    x.mean() + np.hypot(high - x.mean(), extra),
                )
            ends = sorted(d.sign * v for v in (low, high))
            words.append("held" if ends[0] > d.margin else "opposite" if ends[1] < min(d.margin, 0) else
                         "leaning" if d.sign * x.mean() > d.margin else "not held")  # fmt: skip
            shown.append([f"{v:+.3f}" for v in (x.mean(), low, high)])
        expected = "held" if set(words) == {"held"} else "leaning" if set(words) <= {"held", "leaning"} else (
            "opposite" if set(words) == {"opposite"} else "not held")  # fmt: skip
        assert (verdict, int(seeds)) == (expected, len(document["seeds"])), (number, name)
        assert any(NUMBER.findall(text)[:3] == row for row in shown), (number, text, shown)
    return len(found)


def slug(text: str) -> str:
    return text.strip("[]")


@pytest.mark.slow
def test_the_pages_are_those_of_the_stored_results(pages: ModuleType, store: ModuleType) -> None:
    """`python docs/results.py` changes nothing; verdicts and intervals are recomputed by hand."""
    found = store.read_all(DOCS / "results")
    for name, text in pages.pages(found).items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name}: run python docs/results.py"
    page = (DOCS / "results-claims.md").read_text(encoding="utf-8")
    assert check_page(page, DOCS / "results") == sum(len(s.judged()) for s in found)
    assert len((DOCS / "results.md").read_text(encoding="utf-8").split()) < 700  # two minutes


def test_stored_results_are_small_and_of_no_machine(store: ModuleType) -> None:
    for file in (DOCS / "results").glob("*.json"):
        text = file.read_text(encoding="utf-8")
        assert len(text) < 300_000
        assert not re.search(r'[" =:]/(tmp|work|home|root|mnt)/', text), file.name


@pytest.mark.parametrize("effect", [0.2, 0.0, -0.2])
@pytest.mark.slow
def test_numbers_on_the_page_follow_from_the_seeds(add: Callable[..., Path], effect: float) -> None:
    docs = add(document(["looc-addone", "ns-byol", "oac"], effect), "mine", seen="seed 0 was seen")
    page, short = ((docs / name).read_text() for name in ("results-claims.md", "results.md"))
    assert check_page(page, docs / "results") == 5
    assert "- mine: seed 0 was seen" in page
    count = page.count("**held**")
    assert f"{count} held" in short
    assert f"at most {5 * 0.025:.1f} *held*" in short
    for number, name, file, verdict, *_ in ROW.findall(
        page
    ):  # the short page has each claim under its verdict
        listed = f"[{number}](results-details.md#{name}-in-{file})"
        (sentence,) = (part for part in short.replace(". ", ".\n").splitlines() if listed in part)
        assert sentence.startswith(verdict.capitalize() + ": ")


@pytest.mark.slow
def test_a_number_that_is_changed_by_hand_is_noticed(add: Callable[..., Path]) -> None:
    docs = add(document(["looc-addone"], 0.2), "mine")
    page = (docs / "results-claims.md").read_text()
    first = NUMBER.search(page)
    assert first
    with pytest.raises(AssertionError):
        check_page(page.replace(first[0], "+0.777"), docs / "results")
    with pytest.raises(AssertionError):
        check_page(page.replace("**held**", "**leaning**"), docs / "results")


@pytest.mark.slow
def test_what_is_stored(add: Callable[..., Path]) -> None:
    """Values per seed, no curves, no folders of this machine; the same name replaces a file; figures are kept in step."""
    docs = add(document(["looc-addone"], 0.2), "mine", commit="abc")
    text = (docs / "results" / "mine.json").read_text()
    kept = json.loads(text)
    assert "/home" not in text
    assert "curve" not in text
    assert kept["data"][0] == "tiny.zip?n=3"
    assert kept["command"] == "cuewise reproduce x --data pacs.zip/photo --model timm/a:w.pt --out runs/x"
    assert (kept["commit"], kept["date"], kept["worker_minutes"]) == ("abc", "2026-01-02", 2)
    assert len(kept["studies"]["looc-addone"]["LooC"]["values"]["clean"]) == 5
    assert (docs / "images" / "results-looc.svg").is_file()
    add(document(["ns-byol"], 0.2), "mine")
    assert [f.name for f in (docs / "images").glob("*.svg")] == ["results-non-semantic-negatives.svg"]


@pytest.mark.slow
def test_few_seeds_are_a_first_look(add: Callable[..., Path]) -> None:
    page = (add(document(["looc-addone"], 0.2, seeds=3), "mine") / "results.md").read_text()
    assert "**A first look only**, fewer than five seeds: mine (3 seeds)." in page


def test_what_cannot_be_shown_is_refused(add: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="measured numbers come from the stored values"):
        add(document(["looc-addone"], 0.2), note="it gained 0.3")
    other = document(["looc-addone"], 0.2)
    other["studies"]["looc-addone"]["arms"][0]["name"] = "gone"
    with pytest.raises(UserError, match="looc-addone has no arm 'gone' any more"):
        add(other, "other")
    other["studies"] = {"gone": other["studies"]["looc-addone"]}
    with pytest.raises(UserError, match="there is no study gone any more"):
        add(other, "other")
    assert not (tmp_path / "results" / "other.json").exists()


@pytest.mark.slow
def test_settings_that_changed_are_named(add: Callable[..., Path], pages: ModuleType) -> None:
    docs = add(document(["looc-addone"], 0.2), "mine")
    assert "Settings have changed" not in (docs / "results-details.md").read_text()
    file = docs / "results" / "mine.json"
    stored = json.loads(file.read_text())
    stored["studies"]["looc-addone"]["LooC"]["settings"]["leave_out"] = ["other"]
    file.write_text(json.dumps(stored))
    pages.write(docs / "results", docs)
    assert (
        "**Settings have changed since** in looc-addone: LooC." in (docs / "results-details.md").read_text()
    )


def test_a_lab_that_changed_is_named(add: Callable[..., Path], pages: ModuleType) -> None:
    """An optimiser that the lab gives all arms of a method is in no arm's own settings."""
    docs = add(document(["looc-addone"], 0.2), "mine")
    file = docs / "results" / "mine.json"
    stored = json.loads(file.read_text())
    assert set(stored["lab_settings"]) == {"addone", "looc", "moco"}
    stored["lab_settings"]["moco"]["optim"]["lr"] = 0.5
    file.write_text(json.dumps(stored))
    pages.write(docs / "results", docs)
    assert (
        "**Settings have changed since** in looc-addone: MoCo." in (docs / "results-details.md").read_text()
    )


def test_every_command_and_recipe_of_the_papers_exists(pages: ModuleType) -> None:
    rows = [r for part in sys.modules["results_papers"].PAPERS.values() for r in part]
    assert len(rows) > 20
    assert {n for r in rows for n in r.studies} <= set(studies())
    assert {n for r in rows for n in r.recipes} <= set(recipes())
    for row in rows:
        _, verb, *rest = shlex.split(row.command)
        asked = build_parser(verb, VERBS[verb]).parse_intermixed_args(rest)
        if values := getattr(asked, "values", None):
            swept(SHAPES, choose(row.studies), several(values))


def test_the_figure_of_tuning_shows_the_stored_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    drawn = importlib.import_module("tradeoff").picture(DOCS / "results" / "tune.json")
    assert (DOCS / "images" / "tune.svg").read_text(encoding="utf-8") == drawn
