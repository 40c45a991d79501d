"""The end of the page: the models, what they were measured on, with what software, and the commands to do it again."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.report.markup import Html, el, join, name_of
from cuewise.report.reading import Audit, mapping, sequence
from cuewise.report.tables import facts, frame

MOST_SKIPPED = 50


def models_section(audits: Sequence[Audit]) -> Html:
    """Who was audited: architecture, method and cue dials."""
    known = [{k: v for k, v in a.model.items() if k != "name"} for a in audits]
    return el("div", [_block(a, facts(k), opened=True) for a, k in zip(audits, known)], class_="side")


def data_section(audits: Sequence[Audit]) -> Html:
    """Fingerprints of the data, with the files that were skipped and why."""
    return el("div", [_block(a, _data(a)) for a in audits], class_="side")


def environment_section(audits: Sequence[Audit]) -> Html:
    """Versions and machine."""
    said = [{"cuewise": a.version, **a.environment} for a in audits]
    return el("div", [_block(a, facts(values)) for a, values in zip(audits, said)], class_="side")


def commands_section(audits: Sequence[Audit]) -> Html:
    """The commands, once each, as text with a button that copies it."""
    commands = list(dict.fromkeys(a.command for a in audits if a.command))
    if not commands:
        return el("p", "No command was recorded.", class_="placeholder")
    return join([command_html(c) for c in commands])


def command_html(command: str) -> Html:
    """A command as selectable text; the button appears with JavaScript only."""
    button = el("button", "Copy", type="button", class_="copy", hidden=True, aria_label="Copy the command")
    return el("div", el("pre", el("code", command), tabindex="0"), button, class_="command")


def _block(audit: Audit, body: Html, *, opened: bool = False) -> Html:
    summary = el("summary", el("span", class_="dot"), name_of(audit.name))
    return el("details", summary, body, class_=f"m{audit.place % 8}", open=opened)


def _data(audit: Audit) -> Html:
    train = mapping(audit.data.get("train"))
    tests = [mapping(t) for t in sequence(audit.data.get("test"))]
    sets = ([("train", train)] if train else []) + [("test", t) for t in tests if t]
    if not sets:
        return el("p", "No data fingerprint was recorded.", class_="placeholder")
    parts: list[Html] = []
    for role, found in sets:
        skipped = [mapping(s) for s in sequence(found.get("skipped"))]
        parts.append(el("h3", role.capitalize()))
        parts.append(facts({**{k: v for k, v in found.items() if k != "skipped"}, "skipped": len(skipped)}))
        if skipped:
            rows = [
                el(
                    "tr",
                    el("th", name_of(s.get("path", "?")), scope="row"),
                    el("td", name_of(s.get("why", ""))),
                )
                for s in skipped[:MOST_SKIPPED]
            ]
            parts.append(frame(f"Skipped files, {role}", ["skipped file", "why"], rows))
    return join(parts)
