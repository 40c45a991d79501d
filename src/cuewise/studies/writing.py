"""results.json, results.md and report.html from one document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.files import write_json, write_text
from cuewise.progress import clock
from cuewise.report.study import write_study_page
from cuewise.studies.plan import spoken


def write_results(document: dict[str, Any], out: Path) -> dict[str, Any]:
    """All three files; returns what the shell prints."""
    command = document["environment"].get("command", "")
    document["command"] = command if "reproduce" in command else "cuewise reproduce"
    document["command"] = _tidy(document["command"])
    write_json(out / "results.json", document, indent=1)
    write_text(out / "results.md", results_markdown(document))
    page = write_study_page(document, out)
    verdicts = {
        f"{name} claim {c['number']} ({c['strength']})": f"{c['verdict']}: {c['numbers']}"
        for name, study in document["studies"].items()
        for c in study["claims"]
    }
    took = clock(document["took_seconds"])
    return {**verdicts, "results": str(out / "results.md"), "report": str(page), "took": took}


def _tidy(command: str) -> str:
    words = shlex.split(command)
    at = words.index("reproduce") if "reproduce" in words else 0
    return shlex.join(["cuewise", *words[at:]])


def results_markdown(document: Mapping[str, Any]) -> str:
    """Tables and verdicts as docs/results.md shows them."""
    seeds = document["seeds"]
    head = [
        f"# Claims at lab scale: {document['lab']}",
        "",
        f"    {document['command']}",
        "",
        f"{document['runs']} runs of {spoken(document['epochs'].values())}, seeds {', '.join(map(str, seeds))}, "
        f"{clock(document['took_seconds'])} in this call ({document['trained_now']} runs were new), "
        f"{clock(document['worker_seconds'])} of worker time over all calls"
        + (f", --budget {document['budget_minutes']:g} minutes" if document["budget_minutes"] else "")
        + ".",
        "Means over seeds ± half the 95 % t interval; differences are paired by seed, in brackets their t interval.",
        *(f"\n**Warning:** {warning}." for warning in document["warnings"]),
        "",
    ]
    parts = ["\n".join(head), glance_markdown(document["studies"])]
    parts += [study_markdown(name, study) for name, study in document["studies"].items()]
    return "\n".join(parts)


def glance_markdown(studies: Mapping[str, Any]) -> str:
    """Every verdict with its decisive differences and the number of seeds."""
    lines = [
        "## At a glance",
        "",
        "| claim | verdict | seeds | decisive differences |",
        "| --- | --- | --- | --- |",
    ]
    for study in studies.values():
        for c in study["claims"]:
            decisive = "; ".join(_decisive(d) for d in c["differences"]) or "–"
            sentence = f"{c['number']}. {c['sentence']}"
            lines.append(
                f"| {_cell(sentence)} | **{c['verdict']}** | {c['seeds'] or '–'} | {_cell(decisive)} |"
            )
    return "\n".join([*lines, ""])


def _decisive(found: Mapping[str, Any]) -> str:
    return f"{found['label']} {_number([found[k] for k in ('mean', 'low', 'high')], signed=True)}"


def study_markdown(name: str, study: Mapping[str, Any]) -> str:
    """Claims first, then the table of means and the table of differences."""
    lines = [
        f"## {name}",
        "",
        f"{study['summary']}{' (' + study['reference'] + ')' if study['reference'] else ''}.",
        "",
    ]
    lines += ["| claim | strength | verdict | measured |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {c['number']}. {_cell(c['sentence'])} | {c['strength']} | **{c['verdict']}** | {_cell(c['numbers'])} |"
        for c in study["claims"]
    ]
    lines += ["", *_table(study, "means"), ""]
    if len(study["arms"]) > 1:
        lines += [f"Paired differences to {study['base']}:", "", *_table(study, "differences"), ""]
    return "\n".join(lines)


def _table(study: Mapping[str, Any], key: str) -> list[str]:
    """Quantities down, arms across."""
    arms = [a for a in study["arms"] if key == "means" or a["name"] != study["base"]]
    rows = [f"| | {' | '.join(_cell(a['name']) for a in arms)} |", "| --- |" + " --- |" * len(arms)]
    for quantity in (q for q in study["quantities"] if not q.startswith("curve/")):  # those are a figure
        cells = [_number(a[key].get(quantity), signed=key == "differences") for a in arms]
        rows.append(f"| {quantity} | {' | '.join(cells)} |")
    return rows


def _number(interval: Sequence[float | None] | None, *, signed: bool) -> str:
    """mean ± half, or a signed difference with its interval."""
    if not interval or interval[0] is None or math.isnan(interval[0]):
        return "–"
    mean, low, high = interval
    if signed:
        ends = f" [{low:+.3f}, {high:+.3f}]" if low is not None and high is not None else ""
        return f"{mean:+.3f}{ends}"
    return f"{mean:.3f}" + (f" ± {(high - low) / 2:.3f}" if low is not None and high is not None else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
