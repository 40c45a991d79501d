"""Score cards: each number once, one line per model with its interval, chance level and published values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from cuewise.report.compare import Difference
from cuewise.report.declared import kind_of, title_of
from cuewise.report.markup import Html, el, join, name_of
from cuewise.report.numbers import NOTHING, score_range, show, show_change, show_end, show_interval
from cuewise.report.protocols import in_words
from cuewise.report.reading import ReadAudit, merged_names
from cuewise.report.tables import frame
from cuewise.scores import Score

MOST_CARDS = 12
Mark = tuple[str, float]  # what a value on the axis is, and the value


def references(name: str, protocols: set[str]) -> Sequence[Mark]:
    """Published values of this score, only when every model was measured with the published protocol."""
    found = kind_of(name).references
    return [(r.who, r.value) for r in found if protocols and all(r.where in p for p in protocols)]


def chance_of(name: str, audits: Sequence[ReadAudit]) -> float | None:
    """What guessing gives, where that is the same for all models."""
    known = {a.chance[name] for a in audits if name in a.chance}
    return known.pop() if len(known) == 1 else kind_of(name).chance if not known else None


def chosen(audits: Sequence[ReadAudit]) -> list[tuple[str, list[str]]]:
    """(score, scores that are the same number under another name) of each card, in the order that the kinds declare."""
    names = merged_names([{s.name: s for s in a.scores} for a in audits])
    order = sorted(names, key=lambda n: kind_of(n).card or MOST_CARDS * 100)
    out: list[tuple[str, list[str]]] = []
    seen: dict[object, list[str]] = {}
    for name in order:
        same = tuple(_identity(name, a.score(name)) for a in audits)
        if None not in same and same in seen:
            seen[same].append(name)
            continue
        out.append((name, []))
        if None not in same:
            seen[same] = out[-1][1]
    return out


def _identity(name: str, score: Score | None) -> object:
    """Set, answerer and number of an accuracy on a whole set; audits of one cue have that under a name of their own."""
    kind = kind_of(name)
    if score is None or not kind.accuracy or not math.isfinite(score.value):
        return None
    named = re.search(r"; ([^;]+), \d+ of \d+ classes", score.protocol)
    where = kind.part_of(name) or (named[1] if named else "")
    return (where, score.protocol.partition(";")[0], score.value, score.n) if where else None


def cards_section(audits: Sequence[ReadAudit]) -> Html:
    """The first scores as cards; the others are in the table of all scores."""
    cards = chosen(audits)
    if not cards:
        return el("p", "This audit holds no scores.", class_="placeholder")
    shown = [_card(name, same, audits) for name, same in cards[:MOST_CARDS]]
    total = len(merged_names([{s.name: s for s in a.scores} for a in audits]))
    more = f"All {total} scores are in the table below."
    return join(
        el("div", shown, class_="cards"),
        el("p", el("a", more, href="#all-scores"), class_="quiet") if total > len(shown) else None,
    )


def explained(name: str) -> Html:
    """A score's title with its meaning on hover and focus."""
    kind = kind_of(name)
    if not kind.meaning:
        return join(title_of(name))
    return _tip(title_of(name), kind.meaning)


def _card(name: str, same: Sequence[str], audits: Sequence[ReadAudit]) -> Html:
    found = [(a, s) for a in audits for s in [a.score(name)] if s is not None]
    scores = [s for _, s in found]
    low, high = score_range(scores)
    marks = references(name, {s.protocol for s in scores})
    chance = chance_of(name, audits)
    lines = [_line(audit, score, low, high, marks, chance, alone=len(audits) == 1) for audit, score in found]
    measured = any(math.isfinite(s.value) for s in scores)
    notes = list(dict.fromkeys(a.notes[name] for a, _ in found if name in a.notes))
    also = f"The same number: {', '.join(map(title_of, same))}." if same else ""
    return el(
        "article",
        el("h3", explained(name)),
        el("ul", lines, class_="lines"),
        _scale(low, high, name, marks, chance) if measured else None,
        [el("p", note[0].upper() + note[1:], class_="note") for note in notes],
        el("p", also, class_="quiet") if also else None,
        _foot(found),
        class_="card",
    )


def _line(
    audit: ReadAudit,
    score: Score,
    low: float,
    high: float,
    marks: Sequence[Mark],
    chance: float | None,
    *,
    alone: bool,
) -> Html:
    value = el("strong", show(score.value, score.name), class_="value")
    who = None if alone else el("span", el("span", class_="dot"), name_of(audit.name), class_="who")
    if not math.isfinite(score.value):
        return el("li", who, el("span", "not measured", class_="quiet"), class_=f"line m{audit.place % 8}")
    interval = show_interval(score).replace(NOTHING, "no interval")
    detail = el("span", interval, f" · n = {score.n:,}", class_="detail")
    random = el("span", "random weights", class_="badge alarm") if audit.untrained else None
    head = el("div", who, value, detail, random, class_="line-head")
    return el("li", head, _bar(score, low, high, marks, chance), class_=f"line m{audit.place % 8}")


def _bar(score: Score, low: float, high: float, marks: Sequence[Mark], chance: float | None) -> Html:
    """The interval on its axis; drawn in per cent of the width, so that it needs no script."""

    def at(value: float) -> str:
        return f"{100 * min(1.0, max(0.0, (value - low) / (high - low or 1.0))):.2f}%"

    parts = [el("line", x1="0%", x2="100%", y1="10", y2="10", class_="track")]
    if low < 0 < high:
        parts.append(el("line", x1=at(0), x2=at(0), y1="3", y2="17", class_="zero"))
    parts += [el("line", x1=at(v), x2=at(v), y1="2", y2="18", class_="reference") for _, v in marks]
    if chance is not None:
        parts.append(el("line", x1=at(chance), x2=at(chance), y1="3", y2="17", class_="chance"))
    if math.isfinite(score.low) and math.isfinite(score.high):
        parts.append(el("line", x1=at(score.low), x2=at(score.high), y1="10", y2="10", class_="interval"))
    parts.append(el("circle", cx=at(score.value), cy="10", r="5", class_="point"))
    label = f"{show(score.value, score.name)}, 95 % interval {show_interval(score)}"
    return el("svg", parts, class_="bar", width="100%", height="20", role="img", aria_label=label)


def _scale(low: float, high: float, name: str, marks: Sequence[Mark], chance: float | None) -> Html:
    """The ends of the axis, the chance level (or how to read the number), and published values where they hold."""
    ends = el(
        "div",
        el("span", show_end(low, name)),
        el("span", show_end(high, name)),
        class_="scale",
        aria_hidden="true",
    )
    kind = kind_of(name)
    guess = f"guessing gives {show(chance, name)}" if chance is not None else kind.reading
    rows = [
        el(
            "p",
            el("span", class_="chance-key") if chance is not None else None,
            guess,
            class_="quiet references",
        )
    ]
    if marks:
        text = " · ".join(f"{who} {show_end(value, name)}" for who, value in marks)
        key = el("span", class_="reference-key")
        rows.append(el("p", key, f"Published: {text}", class_="quiet references"))
    return join(ends, rows if guess or marks else None)


def _foot(found: Sequence[tuple[ReadAudit, Score]]) -> Html | None:
    """Protocol and weights, each on hover and focus."""
    protocols = list(dict.fromkeys(in_words(s.protocol) for _, s in found if s.protocol))
    tips = []
    if protocols:
        label = "protocol" if len(protocols) == 1 else "protocols differ"
        tips.append(_tip(label, protocols[0] if len(protocols) == 1 else " | ".join(protocols)))
    weights = {a.name: a.weights for a, _ in found if a.weights}
    if weights:
        single = len(found) == 1
        tips.append(_tip("weights", " | ".join(w if single else f"{n}: {w}" for n, w in weights.items())))
    if not tips:
        return None
    return el("p", [join(" · " if i else None, tip) for i, tip in enumerate(tips)], class_="quiet protocol")


def _tip(label: str, text: str) -> Html:
    return el("span", label, el("span", text, class_="tip", role="tooltip"), class_="has-tip", tabindex="0")


def differences_section(found: Sequence[Difference]) -> Html:
    """Differences from the first model as a table; a difference whose interval contains zero is not clear."""
    pairs = {(d.base, d.other) for d in found}
    text = None
    if len(pairs) == 1:
        base, other = next(iter(pairs))
        text = el("p", name_of(other), " minus ", name_of(base), class_="quiet")
    rows = [_difference_row(d, named=len(pairs) > 1) for d in found]
    note = (
        "Intervals are over test images only: they do not say how much another training run with another seed "
        "would differ. No correction is made for looking at many scores."
    )
    table = frame("Differences", ["score", "verdict", "difference", "95 % interval", "how"], rows, (2, 3))
    return join(text, table, el("p", note, class_="quiet"))


def verdict(d: Difference) -> str:
    """`higher`, `lower`, `no clear difference`, or why that is unknown."""
    if not math.isfinite(d.value):
        return "not comparable"
    if d.clear is None:
        return "no interval"
    return ("higher" if d.value > 0 else "lower") if d.clear else "no clear difference"


def span(d: Difference) -> str:
    """The 95 % interval of a difference; a dash when there is none."""
    if d.clear is None:
        return NOTHING
    return f"{show_change(d.low, d.name, unit=False)} to {show_change(d.high, d.name, unit=False)}"


def how(d: Difference) -> str:
    """How the interval was found, with the test's p where there is one."""
    if not math.isfinite(d.p):
        return d.how
    return f"{d.how}, p {'< 0.001' if d.p < 0.001 else f'= {d.p:.3f}'}"


def _difference_row(d: Difference, *, named: bool) -> Html:
    text = verdict(d)
    pair = join(el("br"), el("span", name_of(d.other), " − ", name_of(d.base), class_="quiet"))
    tone = {"higher": "up", "lower": "down"}.get(text, "flat")
    return el(
        "tr",
        el("th", explained(d.name), pair if named else None, scope="row"),
        el("td", el("span", text, class_=f"verdict {tone}")),
        el("td", show_change(d.value, d.name), class_="number"),
        el("td", span(d), class_="number"),
        el("td", how(d), class_="quiet"),
    )
