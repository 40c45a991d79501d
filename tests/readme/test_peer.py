"""The comparison with lightly: its table in the README is what is stored, and its differences are paired by seed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "against_lightly", raising=False)
    import against_lightly

    return against_lightly


def rows(*accuracies: tuple[float, float]) -> list[dict[str, Any]]:
    """lightly and cuewise by seed; the other arms equal lightly."""
    out = []
    for seed, (theirs, ours) in enumerate(accuracies):
        for arm in (
            "lightly", "cuewise", "cuewise, equal time", "cuewise, patch negative", "untrained",
        ):  # fmt: skip
            value = ours if arm == "cuewise" else theirs
            out.append({"arm": arm, "seed": seed, "steps": 10, "seconds": 2.0, "probe": {"value": value}})
    return out


def test_the_readme_has_what_is_stored_and_nothing_else(peer: Any) -> None:
    text = peer.README.read_text(encoding="utf-8")
    assert (peer.BEGIN in text) == peer.STORED.is_file()
    if peer.STORED.is_file():
        stored = json.loads(peer.STORED.read_text(encoding="utf-8"))
        assert peer.into_readme(text, stored) == text
        assert text.index(peer.BEGIN) < text.index("\n| "), "it is the README's first table"
        assert len({r["seed"] for r in stored["rows"]}) >= 3


@pytest.fixture
def stored() -> dict[str, Any]:
    setting = {
        "backbone": "torchvision/resnet18",
        "size": 32,
        "batch": 64,
        "queue": 4096,
        "steps": 10,
        "images": 500,
        "tested": 50,
        "classes": 5,
        "cores": 2,
    }
    return {
        "setting": setting,
        "speed": {"lightly": [0.1, 0.2, 0.3]},
        "rows": rows((0.2, 0.25), (0.4, 0.45)),
        "date": "2026-11-18",
        "lightly": "1.6.0",
    }


def test_what_is_stored_replaces_what_was_there(peer: Any, stored: dict[str, Any]) -> None:
    text = peer.into_readme(f"# cuewise\n\n{peer.BEGIN}old\n{peer.END}\nafter\n", stored)
    assert text.startswith("# cuewise\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| cuewise | 10 | 2 | 35.0 % | +5.0 points [+5.0, +5.0] |" in text
    assert peer.into_readme(text, stored) == text


def test_a_readme_without_the_section_gets_it_once(peer: Any, stored: dict[str, Any]) -> None:
    """--store works on the README as it is, and on one that has no such section yet."""
    text = peer.README.read_text(encoding="utf-8")
    if peer.BEGIN in text:
        text = text[: text.index("## Beside lightly")] + text[text.index(peer.NEXT) :]
    once = peer.into_readme(text, stored)
    assert once.index("## Beside lightly") < once.index(peer.BEGIN) < once.index(peer.NEXT)
    assert once.index(peer.BEGIN) < once.index("\n| ")
    assert peer.into_readme(once, stored) == once
    assert once.replace(once[once.index("## Beside lightly") : once.index(peer.NEXT)], "") == text


def test_differences_are_paired_by_seed(peer: Any) -> None:
    # seeds differ by 20 points, the difference within a seed by none: unpaired, the interval would be wide
    lines = peer.table(rows((0.2, 0.25), (0.4, 0.45), (0.3, 0.35))).splitlines()
    own = next(line for line in lines if line.startswith("| cuewise |"))
    assert "35.0 %" in own
    assert "+5.0 points [+5.0, +5.0]" in own


def test_a_difference_against_us_is_reported(peer: Any) -> None:
    assert "-10.0 points" in peer.table(rows((0.4, 0.3), (0.5, 0.4)))


def test_a_readme_without_its_marks_is_refused(peer: Any) -> None:
    with pytest.raises(SystemExit, match="has neither"):
        peer.into_readme("# cuewise\n", {"setting": {}, "rows": []})


def test_equal_time_is_as_many_steps_as_fit(peer: Any) -> None:
    # by the median turn: the slow last turn of lightly says nothing
    speed = {
        "lightly": [0.2, 0.2, 9.0],
        "cuewise": [0.1, 0.1, 0.1],
        "cuewise, patch negative": [0.4, 0.4, 0.4],
    }
    steps = {arm: peer.steps_of(arm, 100, speed) for arm in peer.ARMS}
    assert steps == {
        "lightly": 100,
        "cuewise": 100,
        "cuewise, equal time": 200,
        "cuewise, patch negative": 100,
        "untrained": 0,
    }
