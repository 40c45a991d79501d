"""From measured quantities to results.json: tables, paired differences, verdicts, figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuewise.results import plain
from cuewise.studies.claims import Claim
from cuewise.studies.jobs import seconds_of
from cuewise.studies.labs import Lab
from cuewise.studies.plan import StudyPlan
from cuewise.studies.study import Arm, Figure, Study
from cuewise.studies.table import Table
from cuewise.train.environment import environment

ByMeasure = dict[str, dict[str, float]]  # measure → quantity → value


def document_of(
    chosen: Sequence[Study],
    plan: StudyPlan,
    measured: Sequence[ByMeasure],
    *,
    took: float,
    trained_now: int,
    budget: float | None,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """results.json."""
    from cuewise import __version__

    tables = {s.name: table_of(s, plan, measured) for s in chosen}
    found = {
        "cuewise": __version__,
        "lab": plan.lab.name,
        "data": list(plan.lab.base["data"]),
        "sets": {role: list(specs) for role, specs in plan.lab.sets.items()},
        "seeds": list(plan.seeds),
        "epochs": plan.epochs,
        "method": plan.lab.main,
        "model": plan.lab.base["model"],
        "size": plan.lab.base["size"],
        "generator": plan.lab.generator,
        "precision": plan.lab.base.get("precision", "auto"),
        "budget_minutes": budget,
        "warnings": list(warnings),
        "took_seconds": took,
        "worker_seconds": sum(seconds_of(j) for j in plan.jobs),
        "runs": len(plan.jobs),
        "trained_now": trained_now,
        "environment": environment(),
        "studies": {s.name: study_part(s, tables[s.name], plan) for s in chosen},
    }
    return plain(found)


def table_of(study: Study, plan: StudyPlan, measured: Sequence[ByMeasure]) -> Table:
    """The quantities of a study's arms, seed by seed; a run may have been measured for other studies as well."""

    def own(j: int) -> dict[str, float]:
        return {q: v for m in study.measures for q, v in measured[j].get(m, {}).items()}

    arms = plan.places.get(study.name, {})
    return Table({a: {s: own(j) for s, j in zip(plan.seeds, jobs)} for a, jobs in arms.items()})


def study_part(study: Study, table: Table, plan: StudyPlan) -> dict[str, Any]:
    """One study, with the names of its run folders."""
    found = judged(study, table, plan.lab)
    for arm in found["arms"]:
        arm["runs"] = [Path(plan.jobs[i].folder).name for i in plan.places[study.name][arm["name"]]]
    return found


def judged(study: Study, table: Table, lab: Lab) -> dict[str, Any]:
    """Arms with every value, means with intervals, paired differences to the first arm, verdicts, figures."""
    base = table.arms[0] if table.arms else ""
    by_name = {a.name: a for a in study.arms(lab)}
    arms = [
        {
            "name": name,
            "x": by_name[name].x,
            "method": by_name[name].method or lab.main,
            "settings": dict(by_name[name].settings),
            "seeds": {str(s): dict(v) for s, v in table.values[name].items()},
            "means": {q: list(table.interval(name, q)) for q in table.quantities},
            "differences": {
                q: list(table.difference(name, base, q)) for q in table.quantities if name != base
            },
        }
        for name in table.arms
    ]
    return {
        "summary": study.summary,
        "reference": study.reference,
        "base": base,
        "quantities": table.quantities,
        "arms": arms,
        "claims": [verdict_of(c, table, lab) for c in study.claims],
        "figures": {f.name: drawn for f in study.figures if (drawn := figure_of(f, study, table, lab))},
    }


def verdict_of(claim: Claim, table: Table, lab: Lab) -> dict[str, Any]:
    """A claim with its verdict and the differences that decide it."""
    found = claim.judge(table, lab)
    return {
        "number": claim.number,
        "sentence": claim.sentence,
        "strength": claim.strength,
        "verdict": found.word,
        "numbers": found.numbers,
        "seeds": found.seeds,
        "draws": found.draws,
        "differences": [f.as_dict() for f in found.outcomes],
    }


def curves_of(figure: Figure, table: Table, arms: Sequence[str]) -> list[dict[str, Any]]:
    """One line per arm and quantity over training: the values of QUANTITY/NUMBER at each NUMBER."""
    series = []
    for arm in arms:
        for quantity in figure.quantities:
            names = [q for q in table.quantities if q.rpartition("/")[0] == quantity and table.has([arm], q)]
            points = [(float(name.rpartition("/")[2]), table.interval(arm, name)) for name in names]
            if points:
                x, intervals = zip(*sorted(points))
                y, low, high = (list(part) for part in zip(*intervals))
                label = arm if len(figure.quantities) == 1 else f"{arm} {quantity}"
                series.append({"name": label, "x": list(x), "y": y, "low": low, "high": high})
    return series


def plane_of(figure: Figure, table: Table, arms: Sequence[Arm]) -> dict[str, Any] | None:
    """One quantity as a heat map: a row per y, the highest above, a column per x; places without an arm stay empty."""
    (quantity,) = figure.quantities
    found = {(a.x, a.y): table.interval(a.name, quantity)[0] for a in arms if table.has([a.name], quantity)}
    if not found:
        return None
    columns = sorted({x for x, _ in found if x is not None})
    rows = sorted({y for _, y in found if y is not None}, reverse=True)
    series = [
        {"name": f"{y:g}", "x": [f"{x:g}" for x in columns], "y": [found.get((x, y)) for x in columns]}
        for y in rows
    ]
    return _drawn(figure, "grid", series, table, ".")


def figure_of(figure: Figure, study: Study, table: Table, lab: Lab) -> dict[str, Any] | None:
    """In the form of audit.json; None where none of its quantities was measured."""
    by_name = {a.name: a for a in study.arms(lab)}
    series, numbers = [], True
    groups = figure.groups(lab) or {"": list(by_name)}
    if figure.over == "plane":
        return plane_of(
            figure, table, [by_name[n] for names in groups.values() for n in names if n in by_name]
        )
    if figure.over:
        series = curves_of(figure, table, [n for names in groups.values() for n in names])
        groups = {}
    for group, names in groups.items():
        arms = [n for n in names if n in table.values]
        for quantity in figure.quantities:
            if not arms or not table.has(arms, quantity):
                continue
            x = [by_name[n].x for n in arms]
            numbers = numbers and all(v is not None for v in x)
            intervals = [table.interval(n, quantity) for n in arms]
            label = " ".join(
                p for p in (group, quantity if len(figure.quantities) > 1 or not group else "") if p
            )
            series.append(
                {
                    "name": label,
                    "x": x if all(v is not None for v in x) else list(arms),
                    "y": [m for m, _, _ in intervals],
                    "low": [low for _, low, _ in intervals],
                    "high": [high for _, _, high in intervals],
                }
            )
    if not series:
        return None
    return _drawn(figure, "lines" if numbers else "bars", series, table, " with 95 % t intervals.")


def _drawn(
    figure: Figure, kind: str, series: list[dict[str, Any]], table: Table, intervals: str
) -> dict[str, Any]:
    texts = {"title": figure.title, "kind": kind, "xlabel": figure.xlabel, "ylabel": figure.ylabel}
    note = f"Means over {max(map(len, table.values.values()))} seeds{intervals}"
    return {**texts, "series": series, "note": note}
