"""The report: one HTML file that needs nothing else, with report.md and scores.csv of the same numbers beside it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.files import write_text
from cuewise.report.closing import (
    command_html,
    commands_section,
    data_section,
    environment_section,
    folded,
    glossary_section,
    models_section,
)
from cuewise.report.common import common_tables, four_ways
from cuewise.report.compare import Difference, differences, not_comparable
from cuewise.report.curves import curve_figures
from cuewise.report.declared import with_documents
from cuewise.report.figures import Figure, equal_axes, figure_html, gather_figures
from cuewise.report.galleries import galleries_html, gather_items, sources, views_section
from cuewise.report.headline import headline
from cuewise.report.markup import Html, alarm, clean, el, embed_json, join, name_of
from cuewise.report.pictures import PagePicture, Picture, embed_all
from cuewise.report.plain import figures_csv, report_markdown, scores_csv
from cuewise.report.reading import ReadAudit, read_audits
from cuewise.report.score_cards import cards_section, differences_section
from cuewise.report.sweep import sweep
from cuewise.report.tables import facts, scores_table, table_html, tables_html
from cuewise.report.topics import Part, anchor, findings, topics_of
from cuewise.report.topics import title as topic_title
from cuewise.report.zoo import zoo

Section = tuple[str, str, Html]  # id, heading, body


def write_report(
    documents: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    title: str | None = None,
    curves: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    pictures: Mapping[str, Picture] | None = None,
    roots: Sequence[Path] | None = None,
    figures: Sequence[Figure] = (),
) -> Path:
    """Write report.html, report.md, scores.csv and figures.csv into `folder`; returns the path of report.html.

    documents: audit documents (audit.json), the first is what the others are compared with.
    curves: model name → rows of its metrics.jsonl. pictures: heading → path, encoded bytes or uint8 array (views.png).
    roots: for each document the folder in which its gallery images lie; `folder` by default.
    figures: further figures over all models, such as those of `sweep_figures`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with with_documents(documents):
        audits = read_audits(documents, roots if roots is not None else [folder] * len(documents))
        found = differences(audits, np.random.default_rng(0))
        audits = [_with_other_images(a, audits[0].name, found) for a in audits]
        title = clean(title or _title(audits))
        text = headline(audits, found)
        items, views = gather_items(audits), dict(pictures or {})
        embedded = embed_all(sources(items, views, folder))
        shown = dict(zip(map(clean, views), embedded))
        places = {a.name: a.place for a in audits}
        trained, measured = curve_figures(curves or {}, places), gather_figures(audits)
        across, tables = across_models(audits)
        drawn = Drawn(trained, measured, [*figures, *across])
        galleries = galleries_html(audits, items, embedded[len(views) :])
        sections = _sections(audits, found, drawn, shown, galleries, tables)
        topics = topics_of([(f["topic"], Html()) for f in measured], galleries, tables_html(audits))
        page = page_html(title, text, audits, sections, drawn.all, topics)
        write_text(folder / "report.md", report_markdown(title, text, audits, found, tables))
    write_text(folder / "scores.csv", scores_csv(audits))
    write_text(folder / "figures.csv", figures_csv(drawn.all))
    write_text(folder / "report.html", page)
    return folder / "report.html"


def _with_other_images(audit: ReadAudit, base: str, found: Sequence[Difference]) -> ReadAudit:
    """Says where scores of two audits are not about the same images."""
    return replace(audit, warnings=(*audit.warnings, *not_comparable(audit.name, base, found)))


def incomparable(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same of audit documents, in lines for the terminal."""
    with with_documents(documents):
        audits = read_audits(documents, [Path()] * len(documents))
        found = differences(audits, np.random.default_rng(0))
    return [f"{a.name}: {why}" for a in audits[1:] for why in not_comparable(a.name, audits[0].name, found)]


@dataclass(frozen=True)
class Drawn:
    """The figures of a page: training curves, each audit's own, and those over several models."""

    trained: Sequence[Figure]
    measured: Sequence[Figure]
    across: Sequence[Figure]

    @property
    def all(self) -> list[Figure]:
        """In the order of their numbers."""
        return [*self.trained, *self.measured, *self.across]


def across_models(audits: Sequence[ReadAudit]) -> tuple[list[Figure], list[dict[str, Any]]]:
    """What only several models together show: a dial's lines, the scatter, who is right where."""
    square, groups = four_ways(audits)
    scatter, correlations = zoo(audits)
    return [*sweep(audits), *scatter, *square], [*common_tables(audits), *groups, *correlations]


def _title(audits: Sequence[ReadAudit]) -> str:
    if len(audits) == 1:
        return f"What {audits[0].name} relies on"
    return (
        f"{audits[0].name} and {audits[1].name} compared"
        if len(audits) == 2
        else f"{len(audits)} models compared"
    )


def _sections(
    audits: Sequence[ReadAudit],
    found: Sequence[Difference],
    drawn: Drawn,
    views: Mapping[str, PagePicture | None],
    galleries: Sequence[Part],
    joint: Sequence[Mapping[str, Any]],
) -> list[Section]:
    """Every part of the page that has something to show, in reading order."""
    first, last = len(drawn.trained), len(drawn.trained) + len(drawn.measured)
    equal_axes(drawn.measured)
    figures = [figure_html(f, i, "h4" if first <= i < last else "h3") for i, f in enumerate(drawn.all)]
    measured = [(f["topic"], html) for f, html in zip(drawn.measured, figures[first:])]
    tables = tables_html(audits)
    across = join(
        el("div", figures[last:], class_="plots") if drawn.across else None, [table_html(t) for t in joint]
    )
    parts: list[tuple[bool, Section]] = [
        (True, ("scores", "Scores", cards_section(audits))),
        (bool(found), ("differences", "Differences", differences_section(found))),
        (bool(drawn.across or joint), ("together", "Models together", across)),
        (
            bool(measured or galleries or tables),
            ("findings", "Findings", findings(measured, galleries, tables)),
        ),
        (
            bool(drawn.trained),
            ("training", "Training", folded("Training curves", _training(drawn.trained, figures))),
        ),
        (
            bool(views),
            ("views", "What the encoder saw", folded("First batch of views", views_section(views))),
        ),
        (True, ("all-scores", "All scores", folded("All scores with protocols", scores_table(audits)))),
        (bool(audits), ("glossary", "Glossary", glossary_section(audits))),
        (bool(audits), ("models", "Models", models_section(audits))),
        (bool(audits), ("data", "Data", data_section(audits))),
        (bool(audits), ("environment", "Environment", environment_section(audits))),
        (True, ("commands", "Commands", commands_section(audits))),
    ]
    return [section for wanted, section in parts if wanted]


def _training(trained: Sequence[Figure], figures: Sequence[Html]) -> Html:
    """The curves that show how learning went; speed and schedule are folded."""
    first = [html for figure, html in zip(trained, figures) if not figure["aside"]]
    rest = [html for figure, html in zip(trained, figures) if figure["aside"]]
    more = folded("Speed and schedule", el("div", rest, class_="plots small")) if rest else None
    return join(el("div", first, class_="plots small"), more)


def page_html(
    title: str,
    text: str,
    audits: Sequence[ReadAudit],
    sections: Sequence[Section],
    figures: Sequence[Figure],
    topics: Sequence[str] = (),
) -> Html:
    """The whole page: warnings, headline, models, parts, and its one block of style and one of script."""
    style, script = _packaged("style.css"), _packaged("plots.js")
    # The hashes let only these two blocks run: markup that slipped through would still be dead.
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", style),
    )
    links = [_link(section, topics) for section in sections]
    blocks = [
        el("section", el("h2", heading, id=ident), body, class_="part", aria_labelledby=ident)
        for ident, heading, body in sections
    ]
    body = el(
        "body",
        el("a", "Skip to the content", href=f"#{sections[0][0]}", class_="skip") if sections else None,
        el(
            "header",
            el("p", "cuewise report", class_="eyebrow"),
            el("h1", title),
            alarm(dict.fromkeys(f"{a.name}: {w}" for a in audits for w in a.loud)),
            _lead(text),
            _models(audits),
        ),
        el("nav", links, aria_label="Parts of this page"),
        el("main", blocks),
        el(
            "footer",
            el("p", "Made by cuewise. This file holds everything it shows and asks nothing of the network."),
        ),
        el("script", embed_json({"figures": figures}), type="application/json", id="report-data"),
        el("script", script),
    )
    return Html("<!doctype html>\n") + el("html", head, body, lang="en") + "\n"  # type: ignore[return-value]


def about_sections(about: Mapping[str, Any]) -> list[Section]:
    """The environment of a command, and the command itself."""
    return [
        ("environment", "Environment", facts({k: v for k, v in about.items() if k != "command"})),
        ("command", "Command", command_html(clean(about.get("command", "")))),
    ]


def _link(section: Section, topics: Sequence[str]) -> Html:
    """An entry of the table of contents; the findings list their topics."""
    ident, heading, _ = section
    link = el("a", heading, href=f"#{ident}")
    if ident != "findings" or not topics:
        return link
    return join(link, [el("a", topic_title(t), href=f"#{anchor(t)}", class_="sub") for t in topics])


def _lead(text: str) -> Html:
    """The headline, with the certainty in brackets set quieter than what it is about."""
    parts = re.split(r"(\([^()]*95 % interval[^()]*\))", text)
    return el(
        "p", [el("span", p, class_="aside") if i % 2 else p for i, p in enumerate(parts)], class_="lead"
    )


def _models(audits: Sequence[ReadAudit]) -> Html | None:
    """Buttons that show or hide a model in every plot; plots.js makes them work."""
    if len(audits) < 2:
        return None
    chips = [
        el("button", el("span", class_="dot"), name_of(a.name), type="button", aria_pressed="true",
           class_=f"chip m{a.place % 8}", data_model=a.name)
        for a in audits
    ]  # fmt: skip
    return el("div", chips, class_="chips", role="group", aria_label="Models shown in all plots")


def _packaged(name: str) -> Html:
    return Html(resources.files("cuewise.report").joinpath(name).read_text(encoding="utf-8"))


def _hash(block: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
