"""One sentence from the measured numbers: what a model relies on, or what a dial changed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.report.compare import Difference, unpaired
from cuewise.report.declared import declared, kind_of, leading, title_of
from cuewise.report.markup import clean
from cuewise.report.numbers import finite, is_share, show, show_change, show_interval
from cuewise.report.reading import ReadAudit, mapping
from cuewise.report.sweep import alpha_of
from cuewise.scores import Score

# in a protocol
LEFT_OUT = re.compile(r"(\d+ images (?:of other classes|with a class the model does not know))")
MOST_NAME = 60  # characters of a model name inside the sentence


def headline(audits: Sequence[ReadAudit], found: Sequence[Difference]) -> str:
    """The sentence for one model, for two, or for several; `found` are the differences from the first."""
    if not audits:
        return "Nothing was audited."
    if len(audits) == 1:
        return one_model(audits[0])
    if len(audits) == 2:
        return two_models(audits[0], audits[1], [d for d in found if d.other == audits[1].name])
    return several_models(audits)


def leading_score(audit: ReadAudit) -> Score | None:
    """The score that comparisons begin with, if it was measured and may be relied on."""
    name = leading()
    found = None if name in audit.withheld else audit.score(name)
    return found if found is not None and math.isfinite(found.value) else None


def one_model(audit: ReadAudit) -> str:
    """What one model relies on, in the words of the first audit that has something to say."""
    for name, why in audit.withheld.items():
        return f"{_short(audit)}: no statement on {_lower(name)} ({why})."
    scores = {s.name: s for s in audit.scores}
    lines = [one.headline(_short(audit), scores) for one in declared().values() if one.headline is not None]
    sentence = next(filter(None, lines), None) or _without_headline(audit)
    return f"With random weights, untrained: {sentence}" if audit.untrained else sentence


def _without_headline(audit: ReadAudit) -> str:
    """The highest and the lowest accuracy."""
    missing = f"{_lower(leading())} was not measured"
    shares = [s for s in audit.scores if kind_of(s.name).accuracy and math.isfinite(s.value)]
    if not shares:
        return f"No score of {_short(audit)} says which cues it relies on."
    best, worst = max(shares, key=lambda s: s.value), min(shares, key=lambda s: s.value)
    if best is worst:
        only = f"{_lower(best.name)} is {show(best.value, best.name)} ({show_interval(best)}{_left(best)})"
        return f"{_short(audit)}: {only}; {missing}."
    return (
        f"Of the {len(shares)} accuracies measured for {_short(audit)}, {_lower(best.name)} is the highest at "
        f"{show(best.value, best.name)}{_left(best)} and {_lower(worst.name)} the lowest at "
        f"{show(worst.value, worst.name)}{_left(worst)}; {missing}."
    )


def two_models(base: ReadAudit, other: ReadAudit, found: Sequence[Difference]) -> str:
    """Which dial moved which number by how much; the main number first, then its price or gain in accuracy."""
    withheld = {*base.withheld, *other.withheld}
    usable = [d for d in found if math.isfinite(d.value) and d.name not in withheld]
    if not usable:
        return f"{_short(base)} and {_short(other)} share no score of the same protocol and images, so nothing can be compared."
    main = _main(usable, base)
    clause = _clause(main, base, other)
    rest = [d for d in usable if d is not main and kind_of(d.name).accuracy and d.clear is not None]
    second = min(rest, key=lambda d: kind_of(d.name).card or math.inf, default=None)
    end = f"; {_short_clause(second, base)}." if second is not None else "."
    return f"{_opening(base, other)}, {clause}{end}"


def _main(usable: Sequence[Difference], base: ReadAudit) -> Difference:
    first = leading_score(base)
    named = next((d for d in usable if first is not None and d.name == first.name), None)
    if named is not None:
        return named
    clear = [d for d in usable if d.clear and is_share(d.name)]
    return max(clear, key=lambda d: abs(d.value)) if clear else usable[0]


def _opening(base: ReadAudit, other: ReadAudit) -> str:
    changed = changed_dials(base.model, other.model)
    if not changed or len(changed) > 3:
        return f"{_short(other)} against {_short(base)}"
    who = f"({_short(other)} against {_short(base)})"
    if all(old is None for _, old, _ in changed):
        return f"With {_listed([_dial(key, new) for key, _, new in changed])} {who}"
    if all(new is None for _, _, new in changed):
        return f"Without {_listed([_dial(key, old) for key, old, _ in changed])} {who}"
    dials = " and ".join(_dial(key, new) for key, _, new in changed)
    before = " and ".join(_setting(old) for _, old, _ in changed)
    return f"With {dials} instead of {before} {who}"


def _dial(key: str, value: Any) -> str:
    """`negatives: patch` is written as patch negatives, any other dial as its name and setting."""
    return (
        f"{_setting(value)} negatives" if key == "negatives" else f"{key.replace('_', ' ')} {_setting(value)}"
    )


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def changed_dials(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(dial, setting of base, setting of other) for method, architecture, size and every cue dial that differs."""
    a, b = _dials(base), _dials(other)
    return [(key, a.get(key), b.get(key)) for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key)]


def _dials(model: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        key: model[key] for key in ("method", "arch", "size") if model.get(key) is not None
    }
    stack: list[tuple[str, Any]] = [(clean(k), v) for k, v in mapping(model.get("cues")).items()]
    for key, value in stack:
        if isinstance(value, Mapping):
            stack += [(f"{key}.{clean(k)}", v) for k, v in value.items()]
        elif value not in (None, "", [], ()):
            out[key] = list(value) if isinstance(value, (list, tuple)) else value
    return out


def _setting(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(_setting(v) for v in value)
    if isinstance(value, float) and finite(value):
        return f"{value:g}"
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else clean(value)


def _clause(d: Difference, base: ReadAudit, other: ReadAudit) -> str:
    a, b = base.score(d.name), other.score(d.name)
    assert a is not None
    assert b is not None  # a difference exists only where both do
    values = f"{show(a.value, d.name)} to {show(b.value, d.name)}"
    left = _left(a) or _left(b)
    if d.clear is None:
        return f"{_lower(d.name)} went from {values}, with no interval to judge that by"
    if not d.clear:
        return f"{_lower(d.name)} shows no clear difference ({values}; {_change(d)}{left})"
    return f"{_lower(d.name)} {'rose' if d.value > 0 else 'fell'} from {values} ({_change(d)}{left})"


def _left(score: Score | None) -> str:
    """On how few images a score rests, where images were left out because their class is not known."""
    found = LEFT_OUT.search(score.protocol) if score is not None else None
    return f", n = {score.n:,}, {found[1]} left out" if score is not None and found else ""


def _short_clause(d: Difference, base: ReadAudit) -> str:
    left = _left(base.score(d.name))
    if not d.clear:
        return f"{_lower(d.name)} shows no clear difference ({_change(d)}{left})"
    return f"{_lower(d.name)} {'rose' if d.value > 0 else 'fell'} by {show_change(abs(d.value), d.name)[1:]} ({_range(d)}{left})"


def _change(d: Difference) -> str:
    return f"{show_change(d.value, d.name)}, {_range(d)}"


def _range(d: Difference) -> str:
    return (
        f"95 % interval {show_change(d.low, d.name, unit=False)} to {show_change(d.high, d.name, unit=False)}"
    )


def several_models(audits: Sequence[ReadAudit]) -> str:
    """The two ends of the leading score among several models, and whether their intervals overlap."""
    measured = [(leading_score(a), a) for a in audits]
    known = sorted(((s, a) for s, a in measured if s is not None), key=lambda pair: pair[0].value)
    dialled = _over_alpha(audits)
    if dialled:
        return dialled
    if len(known) < 2 or len({s.protocol for s, _ in known}) > 1:
        return f"{len(audits)} models side by side; {_lower(leading())} was not measured for them with one protocol."
    (low, lowest), (high, highest) = known[0], known[-1]
    name = _lower(leading())
    ends = f"from {show(low.value, low.name)} ({_short(lowest)}) to {show(high.value, high.name)} ({_short(highest)})"
    among = f"Among {len(known)} models, {name}"
    if not (math.isfinite(low.high) and math.isfinite(high.low)):
        return f"{among} goes {ends}, with no intervals to judge that by."
    if low.high < high.low:
        return f"{among} goes {ends}; the 95 % intervals of these two do not overlap."
    return f"{among} shows no clear difference: it goes {ends}, with overlapping 95 % intervals."


def _over_alpha(audits: Sequence[ReadAudit]) -> str:
    """The ends of a sweep: the leading score without negatives (or with the least weight) and with the greatest weight."""
    points = [(alpha_of(mapping(a.model)), leading_score(a)) for a in audits]
    whole = [(alpha, s) for alpha, s in points if alpha is not None and s is not None]
    settings = sorted({alpha for alpha, _ in whole})
    if len(whole) < len(audits) or len(settings) < 3 or len({s.protocol for _, s in whole}) > 1:
        return ""
    if len(settings) < len(whole):  # several seeds a setting: the figure shows their spread
        ends = [[s.value for alpha, s in whole if alpha == end] for end in (settings[0], settings[-1])]
        first, last = (show(sum(e) / len(e), leading()) for e in ends)
        return (
            f"As α goes from {settings[0]:g} to {settings[-1]:g}, {_lower(leading())} goes from {first} to {last} "
            f"(means over {len(ends[0])} and {len(ends[1])} models)."
        )
    low, high = (next(s for alpha, s in whole if alpha == end) for end in (settings[0], settings[-1]))
    d = unpaired(low, high, "", "")
    verdict = "" if d.clear else ", no clear difference"
    return (
        f"As α goes from {settings[0]:g} to {settings[-1]:g}, {_lower(leading())} goes from {show(low.value, leading())} to "
        f"{show(high.value, leading())} ({_change(d)}){verdict}."
    )


def _lower(name: str) -> str:
    text = title_of(name)
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def _short(audit: ReadAudit) -> str:
    return audit.name if len(audit.name) <= MOST_NAME else audit.name[: MOST_NAME - 1] + "…"
