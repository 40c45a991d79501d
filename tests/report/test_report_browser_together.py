"""Figures, strips and groups of several models in a real chromium: drawn, readable with the keyboard, within the page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import browser as chromium
import pytest
from joint_audits import joint_document
from test_report_browser import CONTRAST

from cuewise.report import write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no chromium is installed (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def tab() -> Iterator[chromium.Browser]:
    program = chromium.find()
    assert program is not None
    found = chromium.Browser(program)
    yield found
    found.close()


def page(folder: Path, count: int) -> Path:
    roots = [folder / str(i) for i in range(count)]
    documents = [joint_document(f"model {i}", i, 0.5 + 0.05 * i, root) for i, root in enumerate(roots)]
    return write_report(documents, folder / "out", roots=roots)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("two"), 2)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("four"), 4)


def figure(title: str) -> str:
    """The figure with this title, as a JavaScript expression."""
    titled = f"f.querySelector('h3, h4').textContent.startsWith('{title}')"
    return f"[...document.querySelectorAll('figure.panel')].find(f => {titled})"


def test_square_of_who_is_right_and_four_groups(tab: chromium.Browser, two: Path) -> None:
    tab.screen(1200)
    tab.open(two)
    assert tab.complaints() == []
    square = figure("Who is right")
    assert tab.run(f"{square}.querySelectorAll('rect.cell').length") == 4
    counts = tab.run(f"[...{square}.querySelectorAll('text.count')].map(t => Number(t.textContent))")
    assert sum(counts) == 200
    assert not tab.run(f"!!{square}.querySelector('.legend')")
    tab.run(f"{square}.querySelector('.plot svg').focus()")
    tab.press("ArrowRight", 39)
    assert "right, right" in tab.run(f"{square}.querySelector('[aria-live]').textContent")
    groups = tab.run("[...document.querySelectorAll('h5')].map(h => h.textContent)")
    assert groups == [
        "Only model 0 is right",
        "Both are right",
        "Both are wrong",
        "Only model 1 is right",
    ]
    assert tab.run(
        "[...document.querySelectorAll('.pair')].every(p => p.querySelectorAll('img').length === 2)"
    )
    assert tab.run("document.querySelectorAll('.pair').length") >= 3


def test_strips_of_both_models_stand_under_each_other(tab: chromium.Browser, two: Path) -> None:
    tab.screen(1200)
    tab.open(two)
    strips = tab.run("[...document.querySelectorAll('.strip')].map(s => s.querySelectorAll('img').length)")
    assert set(strips) == {4}
    assert len(strips) > 3
    assert tab.run("[...document.querySelectorAll('.strip')].every(s => s.tabIndex === 0)")


def test_facets_overlay_models_and_toggle(tab: chromium.Browser, two: Path) -> None:
    tab.screen(1200)
    tab.open(two)
    patch = figure("Similarity: patch")
    series = (
        f"[...new Set([...{patch}.querySelectorAll('.mark[data-series]')].map(m => m.dataset.series))].join()"
    )
    assert tab.run(series) == "model 0,model 1"
    tab.run(f"{patch}.querySelector('.legend button').click()")
    assert tab.run(series) == "model 1"
    assert tab.run(f"!!{figure('Reliability')}.querySelector('.identity')")


def test_sweep_and_scatter_of_four_models(tab: chromium.Browser, four: Path) -> None:
    tab.screen(1200)
    tab.open(four)
    assert tab.complaints() == []
    assert tab.run(f"{figure('Shape bias over')}.querySelectorAll('.mark.path').length") == 1
    assert tab.run(f"{figure('Shape bias over')}.querySelectorAll('.mark.band').length") == 1
    names = f"[...{figure('Accuracy on images and')}.querySelectorAll('text.name')].map(t => t.textContent)"
    assert set(tab.run(names)) <= {f"model {i}" for i in range(4)}
    assert len(tab.run(names)) >= 2
    tab.run("document.querySelectorAll('[data-model]')[3].click()")
    assert "model 3" not in tab.run(names)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("count", ["two", "four"])
def test_stays_inside_with_enough_contrast(
    tab: chromium.Browser, two: Path, four: Path, count: str, width: int, dark: bool
) -> None:
    tab.screen(width, dark=dark, phone=width < 500)
    tab.open({"two": two, "four": four}[count])
    tab.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    tab.settle()
    assert tab.run("document.documentElement.scrollWidth") <= width
    right = """Math.max(...[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .strip, .tip, .hidden'))
        .map(e => e.getBoundingClientRect().right))"""
    assert tab.run(right) <= width + 1
    lowest = tab.run(CONTRAST)
    assert lowest[0] >= 4.5, lowest


def test_headings_step_down_one_level_at_a_time(tab: chromium.Browser, two: Path) -> None:
    tab.screen(1200)
    tab.open(two)
    levels = tab.run("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => Number(h.tagName[1]))")
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert tab.run("[...document.images].every(i => i.alt.length > 0)")
    ids = tab.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
