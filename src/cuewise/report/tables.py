"""Tables: the scores of all models side by side, and every table of the audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.report.declared import kind_of, title_of, topic_of, words
from cuewise.report.markup import Html, clean, el, join, name_of
from cuewise.report.numbers import NOTHING, digits, show, show_interval
from cuewise.report.protocols import in_words
from cuewise.report.reading import ReadAudit, flat, in_line, mapping, merged_names, sequence

MOST_ROWS = 200  # of one table on the page; audit.json has all
MOST_DECISIONS = 60  # of a table with one row per image
TALL_ROWS = 14  # a longer table scrolls inside its box
OPEN_ROWS = 12  # tables up to this length are open


def scores_table(audits: Sequence[ReadAudit]) -> Html:
    """Every score of every model, with its interval, count and protocol."""
    names = merged_names([{s.name: s for s in a.scores} for a in audits])
    if not names:
        return el("p", "This audit holds no scores.", class_="placeholder")
    heads = ["score", *[name_of(a.name) for a in audits], "protocol"]
    rows = []
    for name in names:
        found = [a.score(name) for a in audits]
        cells = [_score_cell(s, name) for s in found]
        protocols = dict.fromkeys(in_words(s.protocol) for s in found if s is not None)
        rows.append(
            el(
                "tr",
                el("th", title_of(name), scope="row", title=kind_of(name).meaning or None),
                cells,
                el("td", " | ".join(protocols), class_="quiet"),
            )
        )
    return frame("All scores", heads, rows, range(1, len(audits) + 1))


def _score_cell(score: Any, name: str) -> Html:
    if score is None:
        return el("td", NOTHING, class_="number")
    detail = f"{show_interval(score)}, n = {score.n:,}"
    return el(
        "td",
        el("strong", show(score.value, name)),
        el("br"),
        el("span", detail, class_="quiet"),
        class_="number",
    )


def frame(label: str, heads: Sequence[object], rows: Sequence[Html], numeric: Sequence[int] = ()) -> Html:
    """A table that scrolls inside its own box, so that the page never does; `numeric` columns are set flush right."""
    names = [el("th", h, scope="col", class_="number" if i in numeric else None) for i, h in enumerate(heads)]
    head = el("thead", el("tr", *names))
    table = el("table", head, el("tbody", rows))
    tall = "scroll tall" if len(rows) > TALL_ROWS else "scroll"
    return el("div", table, class_=tall, tabindex="0", role="region", aria_label=label)


def skipped_files(label: str, heads: Sequence[str], skipped: Sequence[Any]) -> Html:
    """Files that were left out, and why."""
    files = [mapping(s) for s in skipped]
    rows = [
        el("tr", el("th", name_of(f.get("path", "?")), scope="row"), el("td", name_of(f.get("why", ""))))
        for f in files
    ]
    return frame(label, heads, rows)


def tables_html(audits: Sequence[ReadAudit]) -> list[tuple[str, Html]]:
    """(topic, block) of the audits' own tables; several models' tables of one name share a heading."""
    out = []
    for name in sorted(merged_names([a.tables for a in audits]), key=lambda n: n.endswith("decisions")):
        owners = [a for a in audits if name in a.tables]
        title = clean(owners[0].tables[name].get("title") or words(name))
        most = MOST_DECISIONS if name.endswith("decisions") else MOST_ROWS
        blocks = [_table(title, a.tables[name], a.name if len(audits) > 1 else "", most) for a in owners]
        body = el("div", blocks, class_="side")
        if name.endswith("decisions"):  # rarely read: closed, on one line
            block = el("details", el("summary", title), body, class_="panel")
        else:
            block = el("section", el("h4", title), body, class_="panel")
        out.append((topic_of(name), block))
    return out


def table_html(table: Mapping[str, Any]) -> Html:
    """A table of its own, with its heading."""
    title = clean(table.get("title") or "")
    return el("section", el("h3", title), _table(title, table, "", MOST_ROWS), class_="panel")


def _table(title: str, table: Mapping[str, Any], owner: str, most: int) -> Html:
    columns = [clean(c) for c in sequence(table.get("columns"))]
    rows = [sequence(r) for r in sequence(table.get("rows"))]
    label = f"{title}, {owner}" if owner else title
    if not rows or not columns:
        who = join(name_of(owner), ": ") if owner else None
        return el("p", who, "this table is empty.", class_="placeholder")
    body = [el("tr", *[_cell(v) for v in _fit(row, len(columns))]) for row in rows[:most]]
    more = f"The first {most} of {len(rows):,} rows; all are in audit.json." if len(rows) > most else ""
    text = f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}"
    summary = el("summary", name_of(owner) if owner else None, f" · {text}" if owner else text)
    numeric = [i for i in range(len(columns)) if all(_is_number(r[i]) for r in rows if len(r) > i)]
    shown = frame(label, columns, body, numeric)
    return el(
        "details",
        summary,
        shown,
        el("p", more, class_="quiet") if more else None,
        open=len(rows) <= OPEN_ROWS,
    )


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _fit(row: list[Any], width: int) -> list[Any]:
    return (row + [None] * width)[:width]


def _cell(value: object) -> Html:
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return el("td", NOTHING)
    if isinstance(value, bool):
        return el("td", "yes" if value else "no")
    if isinstance(value, float):
        return el("td", digits(value), class_="number")
    if isinstance(value, int):
        return el("td", f"{value:,}", class_="number")
    return el("td", name_of(value))


def facts(values: Mapping[str, Any]) -> Html:
    """Nested settings as one flat list of names and values."""
    rows = []
    for key, value in flat(values):
        rest = f" … ({len(value):,} in all)" if isinstance(value, (list, tuple)) and len(value) > 20 else ""
        rows.append(join(el("dt", key), el("dd", name_of(in_line(value) + rest))))
    if not rows:
        return el("p", "Nothing recorded.", class_="placeholder")
    return el("dl", rows, class_="facts")
