"""The page in a real chromium: silent, offline, drawn, usable with the keyboard, on a phone and in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as chromium
import pytest
from fake_audits import document, two_runs
from test_report_escaping import hostile_documents

from cuewise.report import write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no chromium is installed (apt-get install chromium)"),
]

# Lowest contrast between any visible text and what is painted behind it, by WCAG's formula.
CONTRAST = """(() => {
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (c) => { const [r, g, b] = c.map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parse = (s) => { const m = s.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const behind = (e) => {
    for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; }
    return [255, 255, 255, 1]; };
  const out = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || e.closest("script, noscript")) continue;
    const style = getComputedStyle(e);
    const ink = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink.slice(0, 3)), light(behind(e).slice(0, 3))].sort((x, y) => y - x);
    const said = walker.currentNode.textContent.slice(0, 30);
    out.push([(a + 0.05) / (b + 0.05), e.tagName, e.className.baseVal ?? e.className, said]);
  }
  return out.sort((x, y) => x[0] - y[0])[0];
})()"""


@pytest.fixture(scope="module")
def tab() -> Iterator[chromium.Browser]:
    program = chromium.find()
    assert program is not None
    found = chromium.Browser(program)
    yield found
    found.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(**two_runs(tmp_path_factory.mktemp("two")))


def opened(tab: chromium.Browser, path: Path, width: int = 1200, **screen: Any) -> None:
    tab.screen(width, **screen)
    tab.open(path)


def test_silent_offline_and_drawn(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [report.resolve().as_uri()]
    drawn = tab.run("[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.mark').length)")
    assert len(drawn) == 13
    assert min(drawn) >= 2
    # 8 classes × 2 models as bars, each with its whisker
    assert (
        tab.run(
            "document.querySelectorAll('details:has(#topic-shape-bias) .plots .plot')[0].querySelectorAll('rect.mark').length"
        )
        == 16
    )
    assert (
        tab.run(
            "document.querySelectorAll('details:has(#topic-shape-bias) .plots .plot')[0].querySelectorAll('.whisker').length"
        )
        == 16
    )
    assert tab.run("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert tab.run("document.querySelectorAll('h1').length") == 1


def test_legend_and_model_buttons_hide_and_show(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report)
    series = "[...new Set([...document.querySelectorAll('#figure-8 .plot .mark')].map(m => m.dataset.series))].join()"
    assert tab.run(series) == "plain,texture-averse"
    tab.run("document.querySelector('#figure-8 .legend button').click()")
    assert tab.run(series) == "texture-averse"
    assert (
        tab.run("document.querySelector('#figure-8 .legend button').getAttribute('aria-pressed')") == "false"
    )
    assert "plain" in tab.run(
        "[...document.querySelector('#figure-9 .plot').querySelectorAll('.mark')].map(m => m.dataset.series).join()"
    )
    tab.run("document.querySelector('#figure-8 .legend button').click()")
    assert tab.run(series) == "plain,texture-averse"
    tab.run("document.querySelectorAll('[data-model]')[1].click()")
    assert (
        tab.run(
            "[...document.querySelectorAll('.plot .mark')].filter(m => m.dataset.series.includes('averse')).length"
        )
        == 0
    )
    tab.run("document.querySelectorAll('[data-model]')[0].click()")
    assert tab.run("document.querySelector('#figure-8 .plot').textContent") == "Everything is hidden."
    assert tab.complaints() == []


def test_keyboard_reaches_toggles_plots_and_protocols(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report)
    seen: list[str] = []
    for _ in range(60):
        tab.press("Tab", 9)
        seen.append(
            tab.run("(e => e.className.baseVal ?? (e.className || e.tagName))(document.activeElement)")
            or "svg"
        )
        if tab.run("document.activeElement.closest('#figure-8 .legend') !== null"):
            break
    else:
        pytest.fail(f"Tab did not reach the legend: {seen}")
    assert seen[0] == "skip"
    assert any("chip" in s for s in seen[1:4])
    assert "has-tip" in seen
    tab.press("Enter", 13, "\r")
    assert tab.run("document.activeElement.getAttribute('aria-pressed')") == "false"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.press("Enter", 13, "\r")
    tab.press("Tab", 9)
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.matches('#figure-8 .plot svg')")
    tab.press("ArrowRight", 39)
    said = tab.run("document.querySelector('#figure-8 [aria-live]').textContent")
    assert said.startswith("anchor. plain: ") or "anchor" in said
    assert "texture-averse: " in said
    tab.press("Escape", 27)
    assert tab.run("document.querySelector('#figure-8 .readout').hidden")


def test_hover_reads_values_and_stays_inside(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report, 360, phone=True)
    tab.run("document.querySelectorAll('details.topic').forEach(d => { d.open = true; })")
    tab.settle()
    for figure in range(8, 13):
        box = tab.run(f"""(s => {{ s.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const r = s.getBoundingClientRect(); return [r.left, r.top, r.width, r.height];
        }})(document.querySelector('#figure-{figure} .plot svg'))""")
        for share in (0.2, 0.95):
            tab.move(box[0] + box[2] * share, box[1] + box[3] * 0.5)
            assert not tab.run(f"document.querySelector('#figure-{figure} .readout').hidden")
            assert ":" in tab.run(f"document.querySelector('#figure-{figure} .readout').textContent")
            left, right = tab.run(
                f"(r => [r.left, r.right])(document.querySelector('#figure-{figure} .readout').getClientRects()[0])"
            )
            assert left >= 0
            assert right <= 360


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
def test_no_sideways_scroll_and_enough_contrast(
    tab: chromium.Browser, report: Path, width: int, dark: bool
) -> None:
    opened(tab, report, width, dark=dark, phone=width < 500)
    tab.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    tab.settle()
    assert tab.run("document.documentElement.scrollWidth") <= width
    right = """Math.max(...[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .tip, .hidden'))
        .map(e => e.getBoundingClientRect().right))"""
    assert tab.run(right) <= width + 1
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(247, 247, 245)")
    lowest = tab.run(CONTRAST)
    assert lowest[0] >= 4.5, lowest
    marks = tab.run("""[0,1,2,3,4,5,6,7].map((i) => { const e = document.createElement('i'); e.className = 'm' + i;
        document.body.append(e); e.style.color = 'var(--mine)'; return getComputedStyle(e).color })""")
    assert len(set(marks)) == 8


def test_copy_button_copies_the_command(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report)
    tab.run("document.querySelector('.copy').click()")
    tab.run("new Promise(done => setTimeout(done, 150))")
    assert tab.run("document.querySelector('.copy').textContent") in {"Copied", "Selected"}
    assert tab.run("document.querySelector('.command code').textContent").startswith(
        "cuewise audit runs/plain"
    )


def test_hostile_names_do_no_harm(tab: chromium.Browser, tmp_path: Path) -> None:
    documents, roots = hostile_documents(tmp_path)
    path = write_report(
        documents,
        tmp_path / "out",
        roots=roots,
        curves={d["model"]["name"]: [{"step": 1, "train/loss": 2.0}] for d in documents},
    )
    opened(tab, path)
    tab.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    tab.run("document.querySelectorAll('.legend button, .chip').forEach(b => { b.click(); b.click() })")
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [path.resolve().as_uri()]
    assert tab.run("document.querySelectorAll('img[src=x], script').length") == 2
    assert tab.run("document.querySelector('.chip bdi').textContent") == "<img src=x onerror=alert(1)>.jpg"


@pytest.mark.parametrize("count", [1, 6])
def test_one_and_six_models_with_long_names(tab: chromium.Browser, tmp_path: Path, count: int) -> None:
    roots = [tmp_path / str(i) for i in range(count)]
    documents = [
        document(f"model {'x' * 80} number {i}", i, 0.3 + 0.05 * i, root, i) for i, root in enumerate(roots)
    ]
    documents[0]["figures"]["nothing"] = {"kind": "bars", "series": []}
    documents[0]["figures"]["pie"] = {"kind": "pie", "series": [{"y": [1]}]}
    documents[0]["figures"]["words"] = {"kind": "histogram", "series": [{"x": ["a", "b"], "y": [4, 5]}]}
    path = write_report(documents, tmp_path / "out", roots=roots)
    opened(tab, path, 360, phone=True)
    assert tab.complaints() == []
    assert tab.run("document.documentElement.scrollWidth") <= 360
    # six models of six weights α make a sweep: shape bias, decisions, accuracy
    assert tab.run("document.querySelectorAll('.plot').length") == (6 if count == 1 else 9)
    assert tab.run(
        "[...document.querySelectorAll('.plot')].every(p => p.querySelectorAll('.mark').length > 0)"
    )


def test_topics_are_folded_and_a_link_opens_its_own(tab: chromium.Browser, report: Path) -> None:
    """The page is short until something is asked for; the table of contents stays in view beside it."""
    opened(tab, report, 1600)
    assert tab.run("document.documentElement.scrollHeight") < 7000
    topics = "[...document.querySelectorAll('details.topic')].map(d => d.open)"
    assert tab.run(topics)[0] is True
    assert not any(tab.run(topics)[1:])
    tab.run("document.querySelector('nav a[href=\"#topic-robustness\"]').click()")
    tab.settle()
    assert tab.run("document.querySelector('#topic-robustness').closest('details').open")
    frame = "(r => [r.top, r.right])(document.querySelector('nav').getBoundingClientRect())"
    tab.run("window.scrollTo({top: 3000, behavior: 'instant'})")
    top, right = tab.run(frame)
    assert top == 0
    assert right <= tab.run("document.querySelector('main').getBoundingClientRect().left") + 1
    assert tab.complaints() == []


def test_a_title_says_what_it_means_on_hover(tab: chromium.Browser, report: Path) -> None:
    opened(tab, report, 1000)
    box = tab.run("""(s => { s.scrollIntoView({block: 'center', behavior: 'instant'});
        const r = s.getBoundingClientRect(); return [r.left, r.top]; })(document.querySelector('.card h3 .has-tip'))""")
    tip = "getComputedStyle(document.querySelector('.card h3 .tip')).display"
    assert tab.run(tip) == "none"
    tab.move(box[0] + 5, box[1] + 5)
    tab.settle()
    assert tab.run(tip) == "block"
    assert "Decisions for the shape" in tab.run("document.querySelector('.card h3 .tip').textContent")
