"""The page of a transfer: tasks down, encoders across, differences from the first encoder, time, and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuewise.encoders.card import describe_weights
from cuewise.files import write_text
from cuewise.progress import clock
from cuewise.report.markup import Html, alarm, clean, el, join, name_of
from cuewise.report.page import Section, about_sections, page_html
from cuewise.report.probe import change, pictures_html, readable, versus, with_interval
from cuewise.report.reading import mapping, sequence
from cuewise.report.tables import facts, frame


def write_transfer_page(document: Mapping[str, Any], folder: Path) -> Path:
    """report.html from the document of transfer.json."""
    rows = [mapping(r) for r in sequence(document["rows"])]
    models = [clean(m) for m in sequence(document["models"])]
    sections: list[Section] = [("table", "Tasks", join(alarms(document, rows), table(rows, models)))]
    if len(models) > 1:
        sections.append(("differences", "Differences", differences(rows, models)))
    shown = [(r, m, p) for r in rows for m, p in zip(models, sequence(r.get("pictures"))) if p]
    if shown:
        body = [
            el("section", el("h3", f"{clean(r['task'])}, ", name_of(m)), pictures_html(p, folder))
            for r, m, p in shown
        ]
        sections.append(("pictures", "Pictures", join(body)))
    weights = [describe_weights(w) for w in sequence(document["weights"])]
    sections += [
        ("models", "Encoders", facts(dict(zip(models, weights)))),
        ("data", "Data", facts({clean(r["task"]): {"score": r["score"], "sets": [t.get("name") for t in sequence(r["tests"])]}
                                for r in rows})),
        *about_sections(mapping(document.get("environment"))),
    ]  # fmt: skip
    title = f"Transfer: {', '.join(models)}"
    write_text(folder / "report.html", page_html(title, headline(rows, models), [], sections, []))
    return folder / "report.html"


def headline(rows: list[Mapping[str, Any]], models: list[str]) -> str:
    """On how many scores the first encoder is beaten, or beats, outside the interval."""
    if len(models) < 2:
        return f"{len(rows)} scores of {models[0]}."
    parts = []
    for k, model in enumerate(models[1:], 1):
        found = [
            d for r in rows if (d := mapping(sequence(r["differences"])[k])) and d.get("low") is not None
        ]
        above, below = sum(d["low"] > 0 for d in found), sum(d["high"] < 0 for d in found)
        parts.append(
            f"{model} is above {models[0]} in {above} of {len(found)} scores and below in {below}, outside the 95 % interval"
        )
    return "; ".join(parts) + "."


def alarms(document: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> Html | None:
    """Untrained encoders, and cells that could not be measured."""
    models = [clean(m) for m in sequence(document["models"])]
    texts = [
        f"{m} has random weights: its numbers are about an untrained network."
        for m, w in zip(models, sequence(document["weights"]))
        if w == "random"
    ]
    shared = {
        (clean(r["task"]), clean(o["test"])): o
        for r in rows
        for o in map(mapping, sequence(r.get("overlap")))
        if o.get("shared")
    }
    texts += [
        f"{task}: {o['shared']} of {o['images']} images of {test} are training images."
        for (task, test), o in shared.items()
    ]
    failed = {(r["task"], m): f for r in rows for m, f in zip(models, sequence(r["failed"])) if f}
    texts += [f"{clean(t)}, {m}: {clean(why)}" for (t, m), why in failed.items()]
    return alarm(texts)


def table(rows: list[Mapping[str, Any]], models: list[str]) -> Html:
    """Values with intervals; the time of a cell is under its first score."""
    body, before = [], ""
    for r in rows:
        seconds = sequence(r["seconds"]) if r["task"] != before else []
        before = r["task"]
        cells = []
        for k, value in enumerate(sequence(r["values"])):
            took = f"in {clock(seconds[k])}" if k < len(seconds) and seconds[k] is not None else ""
            text = with_interval(mapping(value)) if value else "not measured"
            cells.append(el("td", text, el("br"), el("span", took, class_="quiet"), class_="number"))
        body.append(el("tr", el("th", clean(r["task"]), scope="row"), el("td", readable(r["score"])), cells))
    return frame("Tasks", ["task", "score", *models], body, range(2, 2 + len(models)))


def differences(rows: list[Mapping[str, Any]], models: list[str]) -> Html:
    """Each encoder minus the first, with a sentence."""
    body = []
    for r in rows:
        for k, d in enumerate(sequence(r["differences"])):
            if d:
                one = mapping(d)
                names = el("th", clean(r["task"]), scope="row"), el("td", readable(r["score"]))
                words = el("td", versus(one, models[0]), class_="quiet")
                moved = el("td", change(one), class_="number")
                body.append(el("tr", names, el("td", name_of(models[k])), moved, words))
    return frame("Differences", ["task", "score", "encoder", f"minus {models[0]}", ""], body, (3,))
