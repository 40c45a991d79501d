"""Figures as plots.js draws them: one figure for all models, with its numbers as a table behind it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.report.declared import topic_of, words
from cuewise.report.markup import Html, clean, el, join, plain
from cuewise.report.numbers import digits
from cuewise.report.reading import ReadAudit, mapping, merged_names, number, sequence

KINDS = ("bars", "lines", "histogram", "scatter", "grid")
MOST_POINTS = 2000  # of one series; more cannot be distinguished on a screen
WIDE = 9  # words on the horizontal axis from which on a figure takes the whole width
MOST_ROWS = 400  # of the table behind a figure

Figure = dict[str, Any]
Member = tuple[ReadAudit, Mapping[str, Any]]  # a model and its figure of one name


def figure_of(kind: str, title: str, series: list[dict[str, Any]], **more: Any) -> Figure:
    """A figure that belongs to no audit, in the form of those that do."""
    texts = {"topic": "", "xlabel": "", "ylabel": "", "note": ""}
    return {**texts, "title": title, "kind": kind, "series": series, **more}


def gather_figures(audits: Sequence[ReadAudit]) -> list[Figure]:
    """The audits' figures, those of one name (and kind) drawn together."""
    out: list[Figure] = []
    for name in merged_names([a.figures for a in audits]):
        groups: dict[str, list[Member]] = {}
        for audit in audits:
            if name in audit.figures:
                figure = audit.figures[name]
                groups.setdefault(clean(figure.get("kind") or "unknown"), []).append((audit, figure))
        for kind, members in groups.items():
            out += _together(name, kind, members)
    return out


def _together(name: str, kind: str, members: list[Member]) -> list[Figure]:
    """One figure for all models; one per model for grids, which cannot be overlaid; one per series for facets."""
    if kind == "grid" and len(members) > 1:
        merged = [(m[0].name, _merge(name, kind, [m])) for m in members]
        return [{**figure, "title": f"{figure['title']}: {model}"} for model, figure in merged]
    figure = _merge(name, kind, members)
    labels = list(dict.fromkeys(s["label"] for s in figure["series"]))
    if not members[0][1].get("facet") or len(members) < 2 or len(labels) < 2:
        return [figure]
    return [
        {
            **figure,
            "title": f"{figure['title']}: {label}",
            "series": [{**s, "label": ""} for s in figure["series"] if s["label"] == label],
        }
        for label in labels
    ]


def _merge(name: str, kind: str, members: list[Member]) -> Figure:
    first = members[0][1]
    series: list[dict[str, Any]] = []
    for audit, figure in members:
        drawn = [mapping(s) for s in sequence(figure.get("series"))]
        for position, one in enumerate(drawn):
            label = clean(one.get("name") or "") if len(drawn) > 1 or not audit.name or kind == "grid" else ""
            label = label.removeprefix(f"{audit.name}: ")  # the model is named beside it
            series.append(
                read_series(one, kind, model=audit.name, place=audit.place, label=label, position=position)
            )
    return {
        "topic": topic_of(name),
        "title": clean(first.get("title") or words(name)),
        "kind": kind,
        "xlabel": clean(first.get("xlabel") or ""),
        "ylabel": clean(first.get("ylabel") or ""),
        "series": [s for s in series if s["y"]],
        "note": clean(first.get("note") or ""),
        "diagonal": first.get("diagonal") is True,
    }


def equal_axes(figures: Sequence[Figure]) -> None:
    """Figures that are side by side and measure the same (one topic, kind and label) get one range of values."""
    groups: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        if figure["kind"] in ("bars", "lines", "histogram") and figure["ylabel"]:
            groups.setdefault((figure["topic"], figure["kind"], figure["ylabel"]), []).append(figure)
    for members in groups.values():
        ends = [
            v
            for f in members
            for s in f["series"]
            for key in ("y", "low", "high")
            for v in s.get(key, ())
            if v is not None
        ]
        if len(members) > 1 and ends:
            for figure in members:
                figure["range"] = [min(ends), max(ends)]


def read_series(
    one: Mapping[str, Any], kind: str, *, model: str, place: int, label: str = "", position: int = 0
) -> dict[str, Any]:
    """One series with equal lengths: x as numbers or words, y/low/high as numbers or None; bins as edges in `x`, `x2`.

    `text` names the points of a scatter.
    """
    y = [_number(v) for v in sequence(one.get("y"))]
    x = [v if isinstance(v, str) else _number(v) for v in map(plain, sequence(one.get("x")))] or list(
        range(len(y))
    )
    out: dict[str, Any] = {"model": model, "place": place, "label": label, "position": position}
    if kind == "histogram" and y and all(isinstance(v, (int, float)) for v in x):
        x, out["x2"] = _edges([float(v) for v in x if v is not None], len(y))
    bounds = {key: [_number(v) for v in sequence(one.get(key))] for key in ("low", "high")}
    size = min(len(x), len(y))
    keep = _thin(size) if kind != "bars" else range(size)
    out["x"], out["y"] = [x[i] for i in keep], [y[i] for i in keep]
    if "x2" in out:
        out["x2"] = [out["x2"][i] for i in keep]
    words = [clean(v) for v in sequence(one.get("text"))]
    if len(words) >= size > 0:
        out["text"] = [words[i] for i in keep]
    for key, values in bounds.items():
        if len(values) >= size > 0:
            out[key] = [values[i] for i in keep]
    return out


def _number(value: object) -> float | None:
    v = number(value)
    return v if abs(v) < float("inf") else None  # NaN compares false, too


def _edges(x: list[float], bins: int) -> tuple[list[Any], list[Any]]:
    """Left and right edges from either edges (bins + 1) or centres (bins)."""
    if len(x) == bins + 1:
        return x[:-1], x[1:]
    if len(x) < 2:
        return [v - 0.5 for v in x], [v + 0.5 for v in x]
    gaps = [b - a for a, b in itertools.pairwise(x)]
    halves = [gaps[0], *gaps, gaps[-1]]
    return [v - halves[i] / 2 for i, v in enumerate(x)], [v + halves[i + 1] / 2 for i, v in enumerate(x)]


def _thin(size: int) -> Sequence[int]:
    """Positions of at most MOST_POINTS evenly spaced points, the last one included."""
    if size <= MOST_POINTS:
        return range(size)
    return sorted({round(i * (size - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})


def series_name(series: Mapping[str, Any]) -> str:
    """What a legend calls a series: the model, and which of its series when it has several."""
    return " · ".join(part for part in (series["model"], series["label"]) if part) or "value"


def figure_html(figure: Figure, number_: int, heading: str = "h3") -> Html:
    """The place where plots.js draws figure `number_`, with its table; readable without JavaScript."""
    ident = f"figure-{number_}"
    title = el(heading, figure["title"], id=f"{ident}-title")
    if figure["kind"] not in KINDS:
        body: Html = _placeholder(
            f"A figure of the kind “{figure['kind']}” is not known here; its numbers are below."
        )
    elif not any(v is not None for s in figure["series"] for v in s["y"]):
        body = _placeholder("Nothing was measured for this figure.")
    else:
        body = join(
            el("div", class_="legend", role="group", aria_label="Show or hide series"),
            el("div", class_="plot", data_figure=number_),
            el(
                "noscript",
                el("p", "The plot needs JavaScript; its numbers are in the table.", class_="quiet"),
            ),
        )
    note = el("p", figure["note"], class_="quiet") if figure.get("note") else None
    return el(
        "figure",
        title,
        body,
        note,
        figure_table(figure),
        class_="panel wide" if _is_wide(figure) else "panel",
        id=ident,
        aria_labelledby=f"{ident}-title",
    )


def _is_wide(figure: Figure) -> bool:
    """Whether a figure has so many bars or columns that it needs the whole width."""
    words = {x for s in figure["series"] for x in s["x"] if isinstance(x, str)}
    return len(words) > WIDE


def _placeholder(sentence: str) -> Html:
    return el("p", sentence, class_="placeholder")


def figure_table(figure: Figure) -> Html:
    """All numbers of a figure in a closed <details>."""
    rows: list[Html] = []
    total = sum(len(s["y"]) for s in figure["series"])
    interval = any("low" in s and "high" in s for s in figure["series"])
    for series in figure["series"]:
        for i, (x, y) in enumerate(zip(series["x"], series["y"])):
            if len(rows) == MOST_ROWS:
                break
            at = f"{_cell(x)} to {_cell(series['x2'][i])}" if "x2" in series else _cell(x)
            at = f"{series['text'][i]}: {at}" if "text" in series and series["text"][i] else at
            cells = [
                el("th", series_name(series), scope="row"),
                el("td", at),
                el("td", _cell(y), class_="number"),
            ]
            if interval:
                low, high = (_cell((series.get(k) or {i: None})[i]) for k in ("low", "high"))
                cells.append(el("td", f"{low} to {high}", class_="number"))
            rows.append(el("tr", *cells))
    heads = ["series", figure["xlabel"] or "x", figure["ylabel"] or "y"] + (
        ["95 % interval"] if interval else []
    )
    head = el("thead", el("tr", *[el("th", h, scope="col") for h in heads]))
    more = el("p", f"The first {MOST_ROWS} of {total:,} rows; all are in audit.json.", class_="quiet")
    table = el("div", el("table", head, el("tbody", rows)), class_="scroll tall", tabindex="0", role="region",
               aria_label=f"Numbers of {figure['title']}")  # fmt: skip
    return el("details", el("summary", "Numbers"), table, more if total > MOST_ROWS else None)


def _cell(value: object) -> str:
    if value is None:
        return "—"
    return value if isinstance(value, str) else digits(float(value))  # type: ignore[arg-type]
