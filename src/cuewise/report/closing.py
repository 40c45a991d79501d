"""The end of the page: the models, what they were measured on, with what software, and the commands to do it again."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.report.declared import kind_of
from cuewise.report.markup import Html, el, join, name_of
from cuewise.report.reading import ReadAudit, mapping, sequence
from cuewise.report.tables import facts, skipped_files

MOST_SKIPPED = 50
GENERAL = (  # words of every report
    (
        "95 % interval",
        "Where the true value lies in 95 of 100 repetitions with other test images of the same kind.",
    ),
    ("n", "How many images (or decisions, classes, pairs) a number rests on."),
    (
        "protocol",
        "What was fitted on what, and what was left out: numbers compare only under equal protocols.",
    ),
    ("guessing", "The value that a model would have whose answers do not depend on the image."),
)


def folded(summary: str, body: Html) -> Html:
    """Something long, closed until it is asked for."""
    return el("details", el("summary", summary), body)


def glossary_section(audits: Sequence[ReadAudit]) -> Html:
    """What each kind of score on this page means."""
    kinds = dict.fromkeys(kind_of(s.name) for a in audits for s in a.scores)
    known = [k for k in kinds if k.meaning]
    rows = [(k.title.replace("{}", "…"), k.meaning) for k in known] + list(GENERAL)
    terms = [join(el("dt", term), el("dd", meaning)) for term, meaning in rows]
    return folded("What the scores mean", el("dl", terms, class_="facts"))


def models_section(audits: Sequence[ReadAudit]) -> Html:
    """Which models were audited: architecture, weights, method and cue dials."""
    blocks = []
    for a in audits:
        known = {k: v for k, v in a.model.items() if k not in ("name", "weights")}
        blocks.append(_block(a, facts({"weights": a.weights or "not recorded", **known}), opened=True))
    return el("div", blocks, class_="side")


def data_section(audits: Sequence[ReadAudit]) -> Html:
    """Fingerprints of the data, with the files that were skipped and why."""
    return el("div", [_block(a, _data(a)) for a in audits], class_="side")


def environment_section(audits: Sequence[ReadAudit]) -> Html:
    """Versions and machine."""
    blocks = [_block(a, facts({"cuewise": a.version, **a.environment})) for a in audits]
    return el("div", blocks, class_="side")


def commands_section(audits: Sequence[ReadAudit]) -> Html:
    """The commands, once each, as text with a button that copies it."""
    commands = list(dict.fromkeys(a.command for a in audits if a.command))
    if not commands:
        return el("p", "No command was recorded.", class_="placeholder")
    return join([command_html(c) for c in commands])


def command_html(command: str) -> Html:
    """A command as selectable text; the button appears with JavaScript only."""
    button = el("button", "Copy", type="button", class_="copy", hidden=True, aria_label="Copy the command")
    return el("div", el("pre", el("code", command), tabindex="0"), button, class_="command")


def _block(audit: ReadAudit, body: Html, *, opened: bool = False) -> Html:
    summary = el("summary", el("span", class_="dot"), name_of(audit.name))
    return el("details", summary, body, class_=f"m{audit.place % 8}", open=opened)


def _data(audit: ReadAudit) -> Html:
    train = mapping(audit.data.get("train"))
    tests = [mapping(t) for t in sequence(audit.data.get("test"))]
    sets = ([("train", train)] if train else []) + [("test", t) for t in tests if t]
    if not sets:
        return el("p", "No data fingerprint was recorded.", class_="placeholder")
    parts: list[Html] = []
    for role, found in sets:
        skipped = sequence(found.get("skipped"))
        parts.append(el("h3", role.capitalize()))
        parts.append(facts({**{k: v for k, v in found.items() if k != "skipped"}, "skipped": len(skipped)}))
        if skipped:
            label = f"Skipped files, {role}"
            parts.append(skipped_files(label, ["skipped file", "why"], skipped[:MOST_SKIPPED]))
    return join(parts)
