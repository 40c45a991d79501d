"""What several models show together: the images that all of them get right, and who is right where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuewise import scores
from cuewise.report.declared import title_of
from cuewise.report.figures import Figure, figure_of, read_series
from cuewise.report.markup import clean
from cuewise.report.numbers import digits, finite
from cuewise.report.paired import is_right, per_image
from cuewise.report.reading import ReadAudit, mapping, sequence
from cuewise.scores import Score

Rows = Mapping[tuple[str, int], Mapping[str, Any]]
Table = dict[str, Any]
# (first right, second right) in the order in which they are shown
GROUPS = ((True, False), (True, True), (False, False), (False, True))


def common_tables(audits: Sequence[ReadAudit]) -> list[Table]:
    """For each table with a `common` entry: every model's means over the images that all models get right."""
    out: list[Table] = []
    if len(audits) < 2:
        return out
    for name, first in audits[0].tables.items():
        asked = mapping(first.get("common"))
        if not asked or not all(name in a.tables for a in audits):
            continue
        tables = [per_image(a.tables[name]) for a in audits]
        shared = [k for k in tables[0] if all(k in t and is_right(t[k]) for t in tables)]
        rows = [
            [a.name, len(shared), *[with_interval(mean_over(t, shared, clean(c))) for c in asked.values()]]
            for a, t in zip(audits, tables)
        ]
        heads = ["model", "images", *[title_of(clean(s)) for s in asked]]
        title = f"On the {len(shared):,} images that all models get right"
        out.append({"title": title, "columns": heads, "rows": rows})
    return out


def mean_over(rows: Rows, keys: Sequence[tuple[str, int]], column: str) -> Score:
    """The mean of a column over some images."""
    values = [float(rows[k][column]) for k in keys if finite(rows[k].get(column))]
    return scores.mean(column, values, "")


def with_interval(score: Score) -> str:
    """A mean with its interval."""
    return f"{digits(score.value)} ({digits(score.low)} to {digits(score.high)})" if score.n else "—"


def four_ways(audits: Sequence[ReadAudit]) -> tuple[list[Figure], list[Table]]:
    """Two models on the same images: how many only one gets right, and the `split` columns in each of the four groups."""
    figures: list[Figure] = []
    tables: list[Table] = []
    if len(audits) != 2:
        return figures, tables
    for name, first in audits[0].tables.items():
        columns = [clean(c) for c in sequence(first.get("split"))]
        if not columns or name not in audits[1].tables:
            continue
        a, b = (per_image(x.tables[name]) for x in audits)
        groups = grouped(a, b)
        if any(groups.values()):
            where = name.removesuffix("/decisions").partition("/")[2]
            figures.append(_square(audits, groups, where))
            tables.append(_groups_table(audits, groups, (a, b), columns, where))
    return figures, tables


def grouped(a: Rows, b: Rows) -> dict[tuple[bool, bool], list[tuple[str, int]]]:
    """Images by (first model right, second model right)."""
    out: dict[tuple[bool, bool], list[tuple[str, int]]] = {group: [] for group in GROUPS}
    for key, row in a.items():
        if key in b:
            out[is_right(row), is_right(b[key])].append(key)
    return out


def group_name(group: tuple[bool, bool], names: Sequence[str]) -> str:
    """What a group is called."""
    return {
        (True, False): f"only {names[0]} is right",
        (False, True): f"only {names[1]} is right",
        (True, True): "both are right",
        (False, False): "both are wrong",
    }[group]


def _square(
    audits: Sequence[ReadAudit], groups: Mapping[tuple[bool, bool], Sequence[Any]], where: str
) -> Figure:
    total = sum(map(len, groups.values()))
    series = [
        read_series(
            {"x": ["right", "wrong"], "y": [len(groups[right, True]), len(groups[right, False])]},
            "grid",
            model="",
            place=0,
            label="right" if right else "wrong",
            position=position,
        )
        for position, right in enumerate((True, False))
    ]
    title = f"Who is right on the same {total:,} images" + (f", {where}" if where else "")
    return figure_of("grid", title, series, xlabel=audits[1].name, ylabel=audits[0].name)


def _groups_table(
    audits: Sequence[ReadAudit],
    groups: Mapping[tuple[bool, bool], Sequence[tuple[str, int]]],
    rows: tuple[Rows, Rows],
    columns: Sequence[str],
    where: str,
) -> Table:
    names = [a.name for a in audits]
    heads = ["group", "images", *[f"{c}, {n}" for c in columns for n in names]]
    body = [
        [
            group_name(g, names),
            len(keys),
            *[with_interval(mean_over(r, keys, c)) for c in columns for r in rows],
        ]
        for g, keys in groups.items()
    ]
    title = "Saliency by who is right" + (f", {where}" if where else "")
    return {"title": title, "columns": heads, "rows": body}
