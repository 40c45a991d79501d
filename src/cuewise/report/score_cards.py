"""Score cards: each score once, a line for each model with its interval, and reference points where they apply."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuewise.report.compare import Difference
from cuewise.report.markup import Html, el, join, name_of
from cuewise.report.numbers import NOTHING, score_range, show, show_change, show_end, show_interval, spoken
from cuewise.report.reading import Audit, merged_names
from cuewise.report.tables import frame
from cuewise.scores import Score

MOST_CARDS = 12
# The scores that say most, first; those that none of these begins come after, in the order of the audit.
FIRST = (
    "shape_bias", "shape_accuracy", "texture_accuracy", "head/", "linear/", "texture/", "cue/", "silhouette/", "sketch/",
    "stylized/", "corruption/accuracy", "color/grey", "coarse/", "fine/", "confidence/", "calibration_error/",
    "similarity/patch", "knn/",
)  # fmt: skip
# Published values hold for the published stimuli alone; an audit that used exactly those says so with this phrase.
STANDARD = "standard 16-class cue-conflict"
REFERENCES = {
    "shape_bias": (
        ("ResNet-50", 0.22),
        ("GoogLeNet", 0.31),
        ("ResNet-50 on stylised images", 0.81),
        ("humans", 0.96),
    )
}


def references(name: str, protocols: set[str]) -> Sequence[tuple[str, float]]:
    """Published values of this score, only when every model was measured with the published protocol."""
    if not protocols or not all(STANDARD in p for p in protocols):
        return ()
    return REFERENCES.get(name.split("/")[-1] if "/" in name else name, ())


def cards_section(audits: Sequence[Audit]) -> Html:
    """The first scores as cards; the others are in the table of all scores."""
    names = merged_names([{s.name: s for s in a.scores} for a in audits])
    if not names:
        return el("p", "This audit holds no scores.", class_="placeholder")
    cards = [_card(name, audits) for name in sorted(names, key=_rank)[:MOST_CARDS]]
    more = f"{len(names) - MOST_CARDS} more scores are in the table of all scores below."
    return join(
        el("div", cards, class_="cards"),
        el("p", el("a", more, href="#all-scores"), class_="quiet") if len(names) > MOST_CARDS else None,
    )


def _rank(name: str) -> int:
    """Where a score stands among the cards: by the first pattern that its name begins with."""
    parts = name.split("/")
    tail = parts[-1] if parts[0] == "shape_bias" else name
    return next((i for i, start in enumerate(FIRST) if tail.startswith(start)), len(FIRST))


def _card(name: str, audits: Sequence[Audit]) -> Html:
    found = [(a, s) for a in audits for s in [a.score(name)] if s is not None]
    scores = [s for _, s in found]
    low, high = score_range(scores)
    protocols = {s.protocol for s in scores}
    marks = references(name, protocols)
    lines = [_line(audit, score, low, high, marks, alone=len(audits) == 1) for audit, score in found]
    return el(
        "article",
        el("h3", spoken(name)),
        el("ul", lines, class_="lines"),
        _scale(low, high, name, marks) if any(math.isfinite(s.value) for s in scores) else None,
        _protocol(scores),
        class_="card",
    )


def _line(
    audit: Audit, score: Score, low: float, high: float, marks: Sequence[tuple[str, float]], *, alone: bool
) -> Html:
    value = el("strong", show(score.value, score.name), class_="value")
    who = None if alone else el("span", el("span", class_="dot"), name_of(audit.name), class_="who")
    if not math.isfinite(score.value):
        return el("li", who, el("span", "not measured", class_="quiet"), class_=f"line m{audit.place % 8}")
    span = show_interval(score)
    detail = el("span", span if span != NOTHING else "no interval", f" · n = {score.n:,}", class_="detail")
    head = el("div", who, value, detail, class_="line-head")
    return el("li", head, _bar(score, low, high, marks), class_=f"line m{audit.place % 8}")


def _bar(score: Score, low: float, high: float, marks: Sequence[tuple[str, float]]) -> Html:
    """The interval on its axis; drawn in per cent of the width, so that it needs no script."""

    def at(value: float) -> str:
        return f"{100 * min(1.0, max(0.0, (value - low) / (high - low or 1.0))):.2f}%"

    parts = [el("line", x1="0%", x2="100%", y1="10", y2="10", class_="track")]
    if low < 0 < high:
        parts.append(el("line", x1=at(0), x2=at(0), y1="3", y2="17", class_="zero"))
    parts += [el("line", x1=at(v), x2=at(v), y1="2", y2="18", class_="reference") for _, v in marks]
    if math.isfinite(score.low) and math.isfinite(score.high):
        parts.append(el("line", x1=at(score.low), x2=at(score.high), y1="10", y2="10", class_="interval"))
    parts.append(el("circle", cx=at(score.value), cy="10", r="5", class_="point"))
    label = f"{show(score.value, score.name)}, 95 % interval {show_interval(score)}"
    return el("svg", parts, class_="bar", width="100%", height="20", role="img", aria_label=label)


def _scale(low: float, high: float, name: str, marks: Sequence[tuple[str, float]]) -> Html:
    ends = el(
        "div",
        el("span", show_end(low, name)),
        el("span", show_end(high, name)),
        class_="scale",
        aria_hidden="true",
    )
    if not marks:
        return ends
    said = " · ".join(f"{who} {show_end(value, name)}" for who, value in marks)
    return join(
        ends, el("p", el("span", class_="reference-key"), f"Published: {said}", class_="quiet references")
    )


def _protocol(scores: Sequence[Score]) -> Html | None:
    protocols = list(dict.fromkeys(s.protocol for s in scores if s.protocol))
    if not protocols:
        return None
    said = protocols[0] if len(protocols) == 1 else "Protocols differ: " + " | ".join(protocols)
    tip = el("span", said, class_="tip", role="tooltip")
    label = "protocol" if len(protocols) == 1 else "protocols differ"
    return el("p", el("span", label, tip, class_="has-tip", tabindex="0"), class_="quiet protocol")


def differences_section(found: Sequence[Difference]) -> Html:
    """Differences from the first model as a table; a difference whose interval holds zero is called unclear."""
    pairs = {(d.base, d.other) for d in found}
    said = None
    if len(pairs) == 1:
        base, other = next(iter(pairs))
        said = el("p", name_of(other), " minus ", name_of(base), class_="quiet")
    rows = [_difference_row(d, named=len(pairs) > 1) for d in found]
    note = (
        "Intervals speak of the test images only: they do not say how much another training run with another seed "
        "would differ. No correction is made for looking at many scores."
    )
    table = frame("Differences", ["score", "verdict", "difference", "95 % interval", "how"], rows, (2, 3))
    return join(said, table, el("p", note, class_="quiet"))


def verdict(d: Difference) -> str:
    """`higher`, `lower`, `no clear difference`, or why that cannot be said."""
    if not math.isfinite(d.value):
        return "not comparable"
    if d.clear is None:
        return "no interval"
    return ("higher" if d.value > 0 else "lower") if d.clear else "no clear difference"


def how(d: Difference) -> str:
    """How the interval was found, with the test's p where there is one."""
    if not math.isfinite(d.p):
        return d.how
    return f"{d.how}, p {'< 0.001' if d.p < 0.001 else f'= {d.p:.3f}'}"


def _difference_row(d: Difference, *, named: bool) -> Html:
    said = verdict(d)
    pair = join(el("br"), el("span", name_of(d.other), " − ", name_of(d.base), class_="quiet"))
    tone = {"higher": "up", "lower": "down"}.get(said, "flat")
    known = math.isfinite(d.low) and math.isfinite(d.high)
    span = (
        f"{show_change(d.low, d.name, unit=False)} to {show_change(d.high, d.name, unit=False)}"
        if known
        else NOTHING
    )
    return el(
        "tr",
        el("th", spoken(d.name), pair if named else None, scope="row"),
        el("td", el("span", said, class_=f"verdict {tone}")),
        el("td", show_change(d.value, d.name), class_="number"),
        el("td", span, class_="number"),
        el("td", how(d), class_="quiet"),
    )
