"""How numbers and score names are said: shares in per cent, everything else in its own unit."""

from __future__ import annotations

import math
import re

from cuewise.scores import Score

NOTHING = "—"
# Words that make a score a share of something, in 0..1; any other score keeps its own unit.
_SHARE_END = re.compile(r"^(accuracy|acc|bias|share|top-?\d|rate|consistency|map|area|coverage)$")
# probe or audit, then what it was tested on: the rest of the name may be any folder
_SHARE_START = re.compile(
    r"^(knn|linear|fewshot|rotation|finetune|cue|confidence|coarse|fine|domains?|retrieval|texture|silhouette|sketch"
    r"|edges|stylized|corruption|frequency|color|accuracy|top)\d*$"
)
# as the last word of the name's first or last part
_OWN_UNIT = re.compile(r"^(.*_)?(similarity|entropy|norm|loss|rank|std|error|mce|nats|bits|distance)$")
_SPOKEN = {
    "knn": "k-NN",
    "top1": "top-1 accuracy",
    "top5": "top-5 accuracy",
    "map": "mAP",
    "mce": "mCE",
    "color": "colour",
    "head": "own classifier",
    "ece": "calibration error",
    "std": "spread",
    "val": "validation",
    "lr": "learning rate",
}
_DECISIONS = {"shape_accuracy": "decisions for shape", "texture_accuracy": "decisions for texture"}
_WORD = re.compile(r"^[a-z]+\d?$")


def is_share(name: str) -> bool:
    """Whether a score of this name is a share in 0..1 (an accuracy, a bias), to be said in per cent."""
    parts = name.lower().replace("-", "_").split("/")
    if parts[0] == "calibration_error":
        return True  # a gap between two shares
    if _OWN_UNIT.match(parts[0]) or _OWN_UNIT.match(parts[-1]):
        return False
    return bool(_SHARE_END.match(parts[-1].split("_")[-1]) or _SHARE_START.match(parts[0].split("_")[0]))


def finite(value: object) -> bool:
    """Whether `value` is a number that can be drawn."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(value: object) -> float:
    """`value` as float; anything that is not a number is NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def digits(value: float) -> str:
    """Three significant digits, without an exponent where that reads well, with a true minus sign."""
    if not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size == 0 or size >= 1e7 or size < 1e-2:
        said = f"{size:.2g}" if size < 1 else f"{size:.3g}"
    elif size >= 1000:
        said = f"{size:,.0f}"
    else:
        said = f"{size:.{3 if size < 1 else max(0, 2 - math.floor(math.log10(size)))}f}"
    return "−" + said if value < 0 else said


def show(value: float, name: str = "", *, unit: bool = True) -> str:
    """`value` of the score `name` as a person says it: `31.4 %` or `0.314`."""
    if not math.isfinite(value):
        return NOTHING
    if is_share(name):
        return f"{100 * value:.1f}".replace("-", "−") + ("\u00a0%" if unit else "")
    return digits(value)


def show_end(value: float, name: str) -> str:
    """The end of an axis, without decimals that say nothing."""
    return (
        f"{100 * value:.0f}\u00a0%"
        if is_share(name) and math.isfinite(value)
        else f"{value:.3g}".replace("-", "−")
    )


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


def spoken(name: str) -> str:
    """A score or metric name in words: `shape_bias` is `Shape bias`; a name that is not plain words stays as it is."""
    parts = []
    for part in name.split("/"):
        if part in _DECISIONS:  # `texture/accuracy` is another score
            parts.append(_DECISIONS[part])
            continue
        words = part.split("_")
        plain = all(_WORD.match(w) for w in words)
        parts.append(" ".join(_SPOKEN.get(w, w) for w in words) if plain else part)
    if len(parts) == 2 and parts[1].startswith(parts[0]):
        parts = parts[1:]
    if len(parts) > 2 and parts[-1] == "accuracy":
        parts = parts[:-1]  # said by the audit's name
    joined = parts[-1].startswith("top-") or parts[-1] == "accuracy" or parts[0] == "validation"
    between = " " if joined else " · "
    out = between.join(p for p in parts if p) or "unnamed"
    return out[0].upper() + out[1:] if out[:4] != "k-NN" and out[:3] not in {"mAP", "mCE"} else out


def score_range(scores: list[Score]) -> tuple[float, float]:
    """The axis on which these scores of one name are drawn: 0..1 for shares, −1..1 for similarities, else what is needed."""
    values = [v for s in scores for v in (s.value, s.low, s.high) if math.isfinite(v)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if is_share(scores[0].name) and low >= 0 and high <= 1:
        return 0.0, 1.0
    if "similarity" in scores[0].name and low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    low, high = min(0.0, low), max(0.0, high)
    room = 0.1 * (high - low or 1.0)
    return (low - room if low < 0 else 0.0), (high + room if high > 0 else 0.0)
