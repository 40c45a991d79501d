"""The same numbers for other programs: report.md for people in a terminal, scores.csv for spreadsheets."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuewise.report.compare import Difference
from cuewise.report.declared import title_of
from cuewise.report.markup import clean
from cuewise.report.numbers import digits, show, show_change, show_interval
from cuewise.report.protocols import in_words
from cuewise.report.reading import ReadAudit
from cuewise.report.score_cards import how, span, verdict
from cuewise.scores import Score

# A spreadsheet runs a cell that begins so as a formula; a leading apostrophe makes it text.
_FORMULA = re.compile(r"^\s*[=+\-@\t\r|%]")
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~])")


def csv_cell(value: object) -> str:
    """Text for a CSV cell that no spreadsheet takes for a formula."""
    text = re.sub(r"[\r\n]+", " ", clean(value))
    return "'" + text if _FORMULA.match(text) else text


def scores_csv(audits: Sequence[ReadAudit]) -> str:
    """One line per score: model, name, value, low, high, n, protocol; a number that was not measured is empty."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["model", "name", "value", "low", "high", "n", "protocol"])
    for audit in audits:
        for s in audit.scores:
            numbers = [v if math.isfinite(v) else None for v in (s.value, s.low, s.high)]
            writer.writerow([csv_cell(audit.name), csv_cell(s.name), *numbers, s.n, csv_cell(s.protocol)])
    return out.getvalue()


def figures_csv(figures: Sequence[Mapping[str, Any]]) -> str:
    """One line per point of every figure: figure, model, series, x, x2 (the far edge of a bin), y, low, high."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(["figure", "model", "series", "x", "x2", "y", "low", "high"])
    for figure in figures:
        for s in figure["series"]:
            names = [csv_cell(v) for v in (figure["title"], s["model"], s["label"])]
            far, low, high = (s.get(key) or [None] * len(s["y"]) for key in ("x2", "low", "high"))
            for x, *numbers in zip(s["x"], far, s["y"], low, high):
                writer.writerow([*names, csv_cell(x) if isinstance(x, str) else x, *numbers])
    return out.getvalue()


def markdown(value: object) -> str:
    """Text from outside as Markdown text: no markup of either kind, on one line."""
    text = re.sub(r"\s+", " ", clean(value)).strip()
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", text)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A pipe table; cells are escaped."""
    lines = ["| " + " | ".join(markdown(h) for h in heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(markdown(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def code_block(command: str) -> str:
    """A command in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{clean(command)}\n{fence}"


def score_table(scores: Sequence[Score], protocol: Callable[[str], str] = str) -> str:
    """The scores of one model; `protocol` says how protocols are written."""
    rows = [
        [title_of(s.name), show(s.value, s.name), show_interval(s), f"{s.n:,}", protocol(s.protocol)]
        for s in scores
    ]
    return markdown_table(["score", "value", "95 % interval", "n", "protocol"], rows)


def report_markdown(
    title: str,
    text: str,
    audits: Sequence[ReadAudit],
    found: Sequence[Difference],
    tables: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page's numbers as Markdown; `tables` are those over all models."""
    parts = [f"# {markdown(title)}", *(f"**{markdown(f'{a.name}: {w}')}**" for a in audits for w in a.loud)]
    parts.append(markdown(text))
    for audit in audits:
        parts.append(f"## {markdown(audit.name)}")
        parts += [f"Weights: {markdown(audit.weights)}"] if audit.weights else []
        parts.append(score_table(audit.scores, in_words) if audit.scores else "No scores.")
    if found:
        parts.append("## Differences")
        rows = [
            [
                title_of(d.name),
                f"{d.other} − {d.base}",
                show_change(d.value, d.name),
                span(d),
                verdict(d),
                how(d),
            ]
            for d in found
        ]
        parts.append(
            markdown_table(["score", "models", "difference", "95 % interval", "verdict", "how"], rows)
        )
    for table in tables:
        rows = [[digits(c) if isinstance(c, float) else c for c in row] for row in table["rows"]]
        parts += [f"## {markdown(table['title'])}", markdown_table(table["columns"], rows)]
    commands = list(dict.fromkeys(a.command for a in audits if a.command))
    if commands:
        parts += ["## Commands", *[code_block(c) for c in commands]]
    return "\n\n".join(parts) + "\n"
