"""One sentence from the measured numbers: what a model relies on, or what a dial changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.report.compare import Difference, unpaired
from cuewise.report.markup import clean
from cuewise.report.numbers import finite, is_share, show, show_change, show_interval, spoken
from cuewise.report.reading import Audit, mapping
from cuewise.report.sweep import alpha_of
from cuewise.scores import Score

_BIAS = ("shape_bias", "shape_bias/shape_bias", "shape_bias/value")
MOSTLY = 0.6  # of the images in which one of the cues is named; below, the sentence says so
MOST_NAME = 60  # characters of a model name inside the sentence
# audits whose shares say how often a model is right
TOLD = (
    "head",
    "linear",
    "knn",
    "cue",
    "texture",
    "silhouette",
    "sketch",
    "stylized",
    "domains",
    "color",
    "fine",
)
PROBES = {"linear": "linear probe", "knn": "k-NN", "head": "the classifier's"}
_ACCURACIES = ("head", "linear", "knn", "clean", "accuracy")


def headline(audits: Sequence[Audit], found: Sequence[Difference]) -> str:
    """The sentence for one model, for two, or for several; `found` are the differences from the first."""
    if not audits:
        return "Nothing was audited."
    if len(audits) == 1:
        return one_model(audits[0])
    if len(audits) == 2:
        return two_models(audits[0], audits[1], [d for d in found if d.other == audits[1].name])
    return several_models(audits)


def bias_of(audit: Audit) -> Score | None:
    """The audit's shape bias, if it was measured: by its plain names, else the first score that ends in it."""
    named = [audit.score(name) for name in _BIAS]
    named += [s for s in audit.scores if s.name.split("/")[-1] == "shape_bias"]
    return next((s for s in named if s is not None and math.isfinite(s.value)), None)


def one_model(audit: Audit) -> str:
    """What one model relies on."""
    bias = bias_of(audit)
    if bias is None:
        return _without_bias(audit)
    share = f"follows shape in {show(bias.value, 'shape_bias')} of its decisions"
    certainty = f"95 % interval {show_interval(bias)}, n = {bias.n:,}"
    if not (math.isfinite(bias.low) and math.isfinite(bias.high)):
        return f"Where shape and texture disagree, {_short(audit)} {share}; how certain that is was not measured."
    if bias.low > 0.5:
        verdict = "relies on shape more than on texture"
    elif bias.high < 0.5:
        verdict = "relies on texture more than on shape"
    else:
        verdict = "shows no clear preference between shape and texture"
    return (
        f"{_short(audit)} {verdict}: where the two disagree it {share} ({certainty}){_neither(audit, bias)}."
    )


def _neither(audit: Audit, bias: Score) -> str:
    """A caution when the model mostly names neither cue, since then the bias rests on a few of the images."""
    prefix = bias.name.rpartition("/")[0]
    parts = [
        audit.score(f"{prefix}/{cue}" if prefix else cue) for cue in ("shape_accuracy", "texture_accuracy")
    ]
    named = sum(s.value for s in parts if s is not None)
    if None in parts or not named < MOSTLY:
        return ""
    return f"; in {show(1 - named, 'share')} of the images it names neither cue"


def _without_bias(audit: Audit) -> str:
    found = [s for s in audit.scores if is_share(s.name) and math.isfinite(s.value)]
    shares = [s for s in found if s.name.partition("/")[0] in TOLD] or found
    if not shares:
        return f"No score of {_short(audit)} tells which cues it relies on."
    best, worst = max(shares, key=lambda s: s.value), min(shares, key=lambda s: s.value)
    if best is worst:
        only = f"{_lower(best.name)} is {show(best.value, best.name)} ({show_interval(best)})"
        return f"{_short(audit)}: {only}; shape bias was not measured."
    return (
        f"Of the {len(shares)} shares measured for {_short(audit)}, {_lower(best.name)} is the highest at "
        f"{show(best.value, best.name)} and {_lower(worst.name)} the lowest at {show(worst.value, worst.name)}; "
        "shape bias was not measured."
    )


def two_models(base: Audit, other: Audit, found: Sequence[Difference]) -> str:
    """Which dial moved which number by how much; the main number first, then its price or gain in accuracy."""
    usable = [d for d in found if math.isfinite(d.value)]
    if not usable:
        return f"{_short(base)} and {_short(other)} share no score of the same protocol, so nothing can be compared."
    main = _main(usable, base)
    clause = _clause(main, base, other)
    rest = [d for d in usable if d is not main and is_share(d.name) and d.clear is not None]
    second = next((d for word in _ACCURACIES for d in rest if word in d.name.split("/")[0]), None)
    end = f"; {_short_clause(second)}." if second is not None else "."
    return f"{_opening(base, other)}, {clause}{end}"


def _main(usable: Sequence[Difference], base: Audit) -> Difference:
    bias = bias_of(base)
    named = next((d for d in usable if bias is not None and d.name == bias.name), None)
    if named is not None:
        return named
    clear = [d for d in usable if d.clear and is_share(d.name)]
    return max(clear, key=lambda d: abs(d.value)) if clear else usable[0]


def _opening(base: Audit, other: Audit) -> str:
    changed = changed_dials(base.model, other.model)
    if not changed or len(changed) > 3:
        return f"{_short(other)} against {_short(base)}"
    who = f"({_short(other)} against {_short(base)})"
    if all(old is None for _, old, _ in changed):
        return f"With {_listed([_said(key, new) for key, _, new in changed])} {who}"
    if all(new is None for _, _, new in changed):
        return f"Without {_listed([_said(key, old) for key, old, _ in changed])} {who}"
    dials = " and ".join(_said(key, new) for key, _, new in changed)
    before = " and ".join(_setting(old) for _, old, _ in changed)
    return f"With {dials} instead of {before} {who}"


def _said(key: str, value: Any) -> str:
    """`negatives: patch` is said as patch negatives, any other dial as its name and setting."""
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


def _clause(d: Difference, base: Audit, other: Audit) -> str:
    a, b = base.score(d.name), other.score(d.name)
    assert a is not None
    assert b is not None  # a difference exists only where both do
    values = f"{show(a.value, d.name)} to {show(b.value, d.name)}"
    if d.clear is None:
        return f"{_lower(d.name)} went from {values}, with no interval to judge that by"
    if not d.clear:
        return f"{_lower(d.name)} shows no clear difference ({values}; {_change(d)})"
    return f"{_lower(d.name)} {'rose' if d.value > 0 else 'fell'} from {values} ({_change(d)})"


def _short_clause(d: Difference) -> str:
    if not d.clear:
        return f"{_lower(d.name)} shows no clear difference ({_change(d)})"
    return f"{_lower(d.name)} {'rose' if d.value > 0 else 'fell'} by {show_change(abs(d.value), d.name)[1:]} ({_range(d)})"


def _change(d: Difference) -> str:
    return f"{show_change(d.value, d.name)}, {_range(d)}"


def _range(d: Difference) -> str:
    return (
        f"95 % interval {show_change(d.low, d.name, unit=False)} to {show_change(d.high, d.name, unit=False)}"
    )


def several_models(audits: Sequence[Audit]) -> str:
    """The two ends of shape bias among several models, and whether their intervals overlap."""
    measured = [(bias_of(a), a) for a in audits]
    known = sorted(((s, a) for s, a in measured if s is not None), key=lambda pair: pair[0].value)
    dialled = _over_alpha(audits)
    if dialled:
        return dialled
    if len(known) < 2 or len({s.protocol for s, _ in known}) > 1:
        return f"{len(audits)} models side by side; shape bias was not measured for them with one protocol."
    (low, lowest), (high, highest) = known[0], known[-1]
    ends = f"from {show(low.value, 'shape_bias')} ({_short(lowest)}) to {show(high.value, 'shape_bias')} ({_short(highest)})"
    if not (math.isfinite(low.high) and math.isfinite(high.low)):
        return f"Among {len(known)} models, shape bias goes {ends}, with no intervals to judge that by."
    if low.high < high.low:
        return f"Among {len(known)} models, shape bias goes {ends}; the 95 % intervals of these two do not overlap."
    return f"Among {len(known)} models, shape bias shows no clear difference: it goes {ends}, with overlapping 95 % intervals."


def _over_alpha(audits: Sequence[Audit]) -> str:
    """The ends of a sweep: shape bias without negatives (or with the least weight) and with the greatest weight."""
    points = [(alpha_of(mapping(a.model)), bias_of(a)) for a in audits]
    whole = [(alpha, s) for alpha, s in points if alpha is not None and s is not None]
    settings = sorted({alpha for alpha, _ in whole})
    if len(whole) < len(audits) or len(settings) < 3 or len({s.protocol for _, s in whole}) > 1:
        return ""
    if len(settings) < len(whole):  # several seeds a setting: the figure shows their spread
        ends = [[s.value for alpha, s in whole if alpha == end] for end in (settings[0], settings[-1])]
        first, last = (show(sum(e) / len(e), "shape_bias") for e in ends)
        return (
            f"As α goes from {settings[0]:g} to {settings[-1]:g}, shape bias goes from {first} to {last} "
            f"(means over {len(ends[0])} and {len(ends[1])} models)."
        )
    low, high = (next(s for alpha, s in whole if alpha == end) for end in (settings[0], settings[-1]))
    d = unpaired(low, high, "", "")
    verdict = "" if d.clear else ", no clear difference"
    return (
        f"As α goes from {settings[0]:g} to {settings[-1]:g}, shape bias goes from {show(low.value, 'shape_bias')} to "
        f"{show(high.value, 'shape_bias')} ({_change(d)}){verdict}."
    )


def _lower(name: str) -> str:
    probe, _, where = name.partition("/")
    if probe in PROBES and where and not where.startswith("top"):
        return f"{PROBES[probe]} accuracy on {where.removesuffix('/accuracy')}"
    said = spoken(name)
    return said[0].lower() + said[1:] if said[1:2].islower() else said


def _short(audit: Audit) -> str:
    return audit.name if len(audit.name) <= MOST_NAME else audit.name[: MOST_NAME - 1] + "…"
