"""How numbers are written: shares in per cent, everything else in its own unit, as the audit declares it."""

from __future__ import annotations

import math

from cuewise.report.declared import kind_of
from cuewise.scores import Score

NOTHING = "—"


def is_share(name: str) -> bool:
    """Whether a score of this name is a share in 0..1 (an accuracy, a bias), written in per cent."""
    return kind_of(name).unit == "share"


def finite(value: object) -> bool:
    """Whether `value` is a number that can be drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def digits(value: float) -> str:
    """Three significant digits, without an exponent where that reads well, with a true minus sign."""
    if not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size == 0 or size >= 1e7 or size < 1e-2:
        text = f"{size:.2g}" if size < 1 else f"{size:.3g}"
    elif size >= 1000:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{3 if size < 1 else max(0, 2 - math.floor(math.log10(size)))}f}"
    return "−" + text if value < 0 else text


def show(value: float, name: str = "", *, unit: bool = True) -> str:
    """`value` of the score `name` as a person writes it: `31.4 %` or `0.314`."""
    if not math.isfinite(value):
        return NOTHING
    if is_share(name):
        return f"{100 * value:.1f}".replace("-", "−") + ("\u00a0%" if unit else "")
    return digits(value)


def show_end(value: float, name: str) -> str:
    """The end of an axis, without needless decimals."""
    if is_share(name) and math.isfinite(value):
        return f"{100 * value:.0f}\u00a0%"
    return f"{value:.3g}".replace("-", "−")


def show_interval(score: Score) -> str:
    """The 95 % interval, `27.1–35.9 %`; a dash when there is none."""
    if not (math.isfinite(score.low) and math.isfinite(score.high)):
        return NOTHING
    dash = "–" if score.low >= 0 else " to "
    return show(score.low, score.name, unit=False) + dash + show(score.high, score.name)


def show_change(value: float, name: str, *, unit: bool = True) -> str:
    """A signed difference: `+31.0 points` for shares (percentage points), `+0.120` otherwise."""
    if not math.isfinite(value):
        return NOTHING
    sign = "−" if value < 0 else "+"
    if is_share(name):
        return f"{sign}{abs(100 * value):.1f}" + (" points" if unit else "")
    return sign + digits(abs(value))


def score_range(scores: list[Score]) -> tuple[float, float]:
    """The axis on which these scores of one name are drawn: 0..1 for shares, −1..1 for cosines, else what is needed."""
    values = [v for s in scores for v in (s.value, s.low, s.high) if math.isfinite(v)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    unit = kind_of(scores[0].name).unit
    if unit == "share" and low >= 0 and high <= 1:
        return 0.0, 1.0
    if unit == "cosine" and low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    low, high = min(0.0, low), max(0.0, high)
    margin = 0.1 * (high - low or 1.0)
    return (low - margin if low < 0 else 0.0), (high + margin if high > 0 else 0.0)
