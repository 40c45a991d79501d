"""Several audits against the first: differences with intervals, paired where both models decided on the same images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuewise.probes.draws import scatter
from cuewise.report.markup import clean
from cuewise.report.paired import Paired, common_scores, paired_scores
from cuewise.report.reading import ReadAudit, mapping, merged_names, sequence
from cuewise.scores import Score

OTHER_IMAGES = ("training images differ", "test images differ")


@dataclass(frozen=True)
class Difference:
    """`other` minus `base` for the score `name`; `clear` says whether the 95 % interval leaves zero out (None: unknown)."""

    name: str
    base: str
    other: str
    value: float
    low: float
    high: float
    how: str
    p: float = math.nan

    @property
    def clear(self) -> bool | None:
        """Whether zero lies outside the interval; None without an interval."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return None
        return self.low > 0 or self.high < 0


def differences(audits: Sequence[ReadAudit], rng: np.random.Generator) -> list[Difference]:
    """Every later audit minus the first, for each score name that both have."""
    return [d for other in audits[1:] for d in _pair(audits[0], other, rng)]


def other_images(base: ReadAudit, other: ReadAudit, score: str) -> str:
    """Why a score of two audits is not about the same images; empty where it is, or where that was not recorded."""
    fitted = [
        h for a in (base, other) if (h := _hash(a.data.get("train")))
    ]  # none where a classifier answers
    if len(set(fitted)) > 1:
        return OTHER_IMAGES[0]
    first, second = ({clean(t.get("name")): _hash(t) for t in _tests(a)} for a in (base, other))
    changed = [name for name in first if second.get(name, first[name]) != first[name]]
    named = [name for name in {**first, **second} if f"/{name}/" in f"/{score}/"]
    return OTHER_IMAGES[1] if (set(named) & set(changed) if named else changed) else ""


def not_comparable(name: str, base: str, found: Sequence[Difference]) -> list[str]:
    """Why scores of the audit `name` cannot be compared with those of `base`: one line per reason; none where they can."""
    own = [d for d in found if d.other == name]
    which = "no score can" if own and all(d.how in OTHER_IMAGES for d in own) else "some scores cannot"
    reasons = dict.fromkeys(d.how for d in own if d.how in OTHER_IMAGES)
    return [f"{reason}, so that {which} be compared with {base}" for reason in reasons]


def _tests(audit: ReadAudit) -> list[Mapping[str, Any]]:
    return [mapping(t) for t in sequence(audit.data.get("test"))]


def _hash(fingerprint: Any) -> str:
    """Of names and contents."""
    found = mapping(fingerprint)
    return " ".join(clean(found.get(key) or "") for key in ("hash", "content")).strip()


def _pair(base: ReadAudit, other: ReadAudit, rng: np.random.Generator) -> list[Difference]:
    out: list[Difference] = []
    paired = paired_scores(base.tables, other.tables, rng)
    common = {
        name: found
        for table in base.tables
        if table in other.tables
        for name, found in common_scores(base.tables[table], other.tables[table]).items()
    }
    for name in merged_names([{s.name: s for s in a.scores} for a in (base, other)]):
        a, b = base.score(name), other.score(name)
        if a is None or b is None or not (math.isfinite(a.value) and math.isfinite(b.value)):
            continue
        why = other_images(base, other, name) or ("protocols differ" if a.protocol != b.protocol else "")
        if why:
            out.append(Difference(name, base.name, other.name, math.nan, math.nan, math.nan, why))
        elif name in common:  # each score rests on its own right answers; only the shared ones compare
            d = common[name]
            out.append(Difference(name, base.name, other.name, d.other - d.base, d.low, d.high, d.how))
        elif name in paired and _agrees(paired[name], a, b):
            out.append(over_draws(paired[name], a, b, base.name, other.name))
        else:
            out.append(unpaired(a, b, base.name, other.name))
    return out


def over_draws(d: Paired, a: Score, b: Score, base: str, other: str) -> Difference:
    """b − a paired by image; where a probe answered for both, paired by draw of its training images as well."""
    value = b.value - a.value
    if not a.draws or len(a.draws) != len(b.draws):
        return Difference(a.name, base, other, value, d.low, d.high, d.how, d.p)
    extra = scatter(np.subtract(b.draws, a.draws))
    low, high = value - math.hypot(value - d.low, extra), value + math.hypot(d.high - value, extra)
    how = f"{d.how.removesuffix(', exact McNemar test')} and over {len(a.draws)} draws of the training images"
    return Difference(a.name, base, other, value, low, high, how)


def unpaired(a: Score, b: Score, base: str, other: str) -> Difference:
    """b − a from two separate intervals (Newcombe's combination, sound also for intervals that are not symmetric)."""
    d = b.value - a.value
    low = d - math.hypot(b.value - b.low, a.high - a.value)
    high = d + math.hypot(b.high - b.value, a.value - a.low)
    return Difference(a.name, base, other, d, low, high, "from the two intervals")


def _agrees(found: Paired, a: Score, b: Score) -> bool:
    # A decisions table that does not give the score's own value belongs to another question.
    return abs(found.base - a.value) < 2e-3 and abs(found.other - b.value) < 2e-3
