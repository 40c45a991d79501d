"""The page of a study: its verdicts, its figures, its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuewise.files import write_text
from cuewise.report.closing import command_html
from cuewise.report.figures import KINDS, Figure, figure_html, read_series
from cuewise.report.markup import Html, alarm, clean, el, join, slug
from cuewise.report.numbers import digits
from cuewise.report.page import Section, page_html
from cuewise.report.reading import mapping, sequence
from cuewise.report.tables import facts, frame


def write_study_page(document: Mapping[str, Any], folder: Path) -> Path:
    """report.html from the document of results.json."""
    studies = mapping(document.get("studies"))
    warnings = [f"{clean(w)}." for w in sequence(document.get("warnings"))]
    figures: list[Figure] = []
    sections: list[Section] = [("verdicts", "Verdicts", join(alarm(warnings), _verdicts(studies)))]
    for name, study in studies.items():
        start = len(figures)
        figures += [read_figure(f) for f in mapping(study.get("figures")).values()]
        drawn = [figure_html(f, i) for i, f in enumerate(figures[start:], start)]
        body = join(
            el("p", study.get("summary", ""), class_="quiet"),
            el("div", drawn, class_="plots"),
            _tables(study),
        )
        sections.append((slug(name), clean(name), body))
    sections.append(("environment", "Environment", facts(mapping(document.get("environment")))))
    sections.append(("command", "Command", command_html(clean(document.get("command", "")))))
    title = f"The papers' claims at lab scale: {clean(document.get('lab', ''))}"
    write_text(folder / "report.html", page_html(title, headline_of(document), [], sections, figures))
    return folder / "report.html"


def headline_of(document: Mapping[str, Any]) -> str:
    """How many claims held."""
    claims = [c for s in mapping(document.get("studies")).values() for c in sequence(s.get("claims"))]
    asked = [c for c in claims if c["verdict"] != "not measured"]
    held = sum(c["verdict"] == "held" for c in asked)
    others = [
        f"{n} {word}" for word in ("leaning", "opposite") if (n := sum(c["verdict"] == word for c in asked))
    ]
    seeds = len(sequence(document.get("seeds")))
    epochs = " and ".join(map(str, sorted(set(mapping(document.get("epochs")).values()))))
    trained = f"{seeds} seed{'s' if seeds != 1 else ''} of {epochs} epoch{'s' if epochs != '1' else ''}"
    return (
        f"{held} of {len(asked)} claims held over {trained}{''.join(f', {o}' for o in others)}"
        f"{f'; {len(claims) - len(asked)} could not be measured' if len(asked) < len(claims) else ''}."
    )


def read_figure(figure: Mapping[str, Any]) -> Figure:
    """A figure of the document as plots.js takes it; every series is a line of its own colour, or a row of a heat map."""
    kind = clean(figure.get("kind") or "lines")
    series = [
        read_series(
            mapping(s),
            kind,
            model="",
            place=0 if kind == "grid" else i,
            label=clean(mapping(s).get("name") or ""),
            position=i,
        )
        for i, s in enumerate(sequence(figure.get("series")))
    ]
    words = {k: clean(figure.get(k) or "") for k in ("title", "xlabel", "ylabel", "note")}
    return {**words, "kind": kind if kind in KINDS else "lines", "series": series, "heat": kind == "grid"}


def _verdicts(studies: Mapping[str, Any]) -> Html:
    rows = [
        el("tr", el("th", f"{name}, {c['number']}", scope="row"), el("td", c["sentence"]), el("td", c["strength"]),
           el("td", el("strong", c["verdict"])), el("td", c["numbers"], class_="quiet"))
        for name, study in studies.items()
        for c in sequence(study.get("claims"))
    ]  # fmt: skip
    return frame("Verdicts", ["claim", "what it says", "strength", "verdict", "measured"], rows)


def _tables(study: Mapping[str, Any]) -> Html:
    """Means and half intervals, quantities down and arms across."""
    arms = sequence(study.get("arms"))
    rows = [
        el(
            "tr",
            el("th", quantity, scope="row"),
            [el("td", _mean(a, quantity), class_="number") for a in arms],
        )
        for quantity in sequence(study.get("quantities"))
    ]
    return frame("Means over seeds", ["", *[a["name"] for a in arms]], rows, range(1, len(arms) + 1))


def _mean(arm: Mapping[str, Any], quantity: str) -> str:
    mean, low, high = mapping(arm.get("means")).get(quantity) or (None, None, None)
    if mean is None:
        return "—"
    return digits(mean) + (f" ± {digits((high - low) / 2)}" if low is not None and high is not None else "")
