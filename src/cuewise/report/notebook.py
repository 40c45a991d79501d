"""What a notebook shows of a result: scores as a table with their intervals, figures and pictures; names are escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.files import read_object
from cuewise.report.declared import with_documents
from cuewise.report.figures import gather_figures
from cuewise.report.markup import Html, el, join, name_of
from cuewise.report.pictures import PictureFile, embed_all
from cuewise.report.reading import ReadAudit, read_audits
from cuewise.report.svg import can_draw, figure_svg, legend
from cuewise.text_table import image_counts

MOST_ROWS = 60  # of a table
MOST_FIGURES = 6
SIDE = 900  # longest side of a picture in pixels
BUDGET = 1_500_000  # bytes of all pictures: a notebook keeps them in its file
# files of the folders that results name, in the order in which they are shown
PICTURES = ("views.png", "reconstructions.png", "confusion.png", "preview.png", ".cuewise/preview.png")
LEFT, RIGHT = "text-align:left", "text-align:right;font-variant-numeric:tabular-nums"


def result_html(result: Mapping[str, Any], settings: str = "") -> Html:
    """The whole cell; settings: a configuration as text."""
    audits = list(_audits(result))
    loud = dict.fromkeys(f"{a.name}: {text}" for a in audits for text in a.loud)
    parts: list[object] = [el("p", el("strong", "Warning: "), text, style="color:#9b1c1c") for text in loud]
    if settings:
        parts.append(el("details", el("summary", "configuration"), el("pre", settings)))
    if isinstance(result.get("plan"), list):
        parts += [el("p", line) for line in result["plan"]]
    if "comparison" in result:
        found = result["comparison"]
        columns, rows = found["columns"], found["rows"]
        if "n" in found:
            columns = [*columns, "n"]
            rows = [[*row, image_counts(n)] for row, n in zip(rows, found["n"])]
        parts.append(_table(columns, rows))
    elif "scores" in result:
        parts.append(_scores(result["scores"]))
    if "runs" in result:
        columns = list(dict.fromkeys(k for run in result["runs"] for k in run))
        parts.append(_table(columns, [[run.get(c) for c in columns] for run in result["runs"]]))
    single = [[k, v] for k, v in result.items() if isinstance(v, str | int | float)]
    if single:
        parts.append(_table(None, single))
    parts += _figures(audits)
    parts += _pictures(result)
    return el("div", parts, class_="cuewise")


def _scores(scores: Sequence[Mapping[str, Any]]) -> Html:
    rows = [[s["name"], s["value"], _interval(s), s["n"], s["protocol"]] for s in scores]
    return _table(["score", "value", "95 % interval", "n", "protocol"], rows)


def _interval(score: Mapping[str, Any]) -> object:
    """The interval in numbers and, of a share, as a bar from 0 to 1."""
    low, value, high = (score.get(k) for k in ("low", "value", "high"))
    if low is None or high is None or value is None:
        return None
    words = f"{_shown(low)} to {_shown(high)} "
    if not 0 <= low <= value <= high <= 1:
        return words
    bar = el("svg",
             el("line", x1=0, y1=6, x2=100, y2=6, stroke="#ccd0d4"),
             el("line", x1=f"{100 * low:.1f}", y1=6, x2=f"{100 * high:.1f}", y2=6, stroke="#0b6bb3", stroke_width=5,
                stroke_opacity=0.4),
             el("circle", cx=f"{100 * value:.1f}", cy=6, r=3, fill="#0b6bb3"),
             viewBox="-4 0 108 12", width=108, height=12, role="img", aria_label=words)  # fmt: skip
    return join(words, bar)


def _table(columns: Sequence[str] | None, rows: Sequence[Sequence[object]]) -> Html:
    """A table; without columns, the first cell of each row is its heading."""
    head = el("thead", el("tr", [el("th", name_of(c), style=LEFT) for c in columns])) if columns else None
    body = [el("tr", [_cell(v, i == 0) for i, v in enumerate(row)]) for row in rows[:MOST_ROWS]]
    more = f"The first {MOST_ROWS} of {len(rows):,} rows." if len(rows) > MOST_ROWS else None
    return join(el("table", head, el("tbody", body)), el("p", more) if more else None)


def _cell(value: object, first: bool) -> Html:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = value if isinstance(value, Html) else name_of(_shown(value))
    return el("th" if first else "td", shown, style=RIGHT if number else LEFT)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "–" if value is None else str(value)


def _folders(result: Mapping[str, Any]) -> list[Path]:
    """Folders that the result names."""
    found = [Path(result[k]) for k in ("run", "folder") if isinstance(result.get(k), str)]
    return [*found, *([Path(result["report"]).parent] if isinstance(result.get("report"), str) else [])]


def _audits(result: Mapping[str, Any]) -> Iterator[ReadAudit]:
    """The audits beside the report; a file that is missing or broken shows nothing."""
    if not isinstance(result.get("report"), str):
        return
    place = Path(result["report"]).parent
    files = [
        place / "audit.json",
        *sorted(place.glob("*/audit.json")),
        *sorted(place.glob("audit*/*/audit.json")),
    ]
    documents, roots = [], []
    for file in dict.fromkeys(files):
        if content := read_object(file):
            documents.append(content)
            roots.append(file.parent)
    yield from read_audits(documents, roots)


def _figures(audits: Sequence[ReadAudit]) -> list[Html]:
    """The first figures of the audits, drawn."""
    with with_documents([]):
        drawn = [f for f in gather_figures(audits) if can_draw(f)]
    shown = [el("div", el("h4", f["title"]), figure_svg(f), legend(f)) for f in drawn[:MOST_FIGURES]]
    left = len(drawn) - len(shown)
    return [*shown, el("p", f"{left} more figures are in the report.")] if left else shown


def _pictures(result: Mapping[str, Any]) -> list[Html]:
    """Pictures in the folders that the result names, inside the page."""
    files = [folder / name for folder in dict.fromkeys(_folders(result)) for name in PICTURES]
    if isinstance(result.get("picture"), str):
        files.insert(0, Path(result["picture"]))
    files = [f for f in files if f.is_file()]
    embedded = embed_all([PictureFile(f.resolve(), Path(), SIDE, f) for f in files], BUDGET)
    return [
        el("div", el("h4", name_of(file.name)), el("img", src=p.uri, alt=file.name, style="max-width:100%"))
        for file, p in zip(files, embedded)
        if p is not None
    ]
