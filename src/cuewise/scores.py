"""A Score: one measured number with its 95 % interval, its count and the protocol that made it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Score:
    """`value` in its natural unit (accuracies in 0..1), `[low, high]` its 95 % interval, `n` what it rests on."""

    name: str
    value: float
    low: float
    high: float
    n: int
    protocol: str
    draws: tuple[float, ...] = ()  # the same over draws of a probe's training images, where it has them

    def item(self) -> float:
        """The number alone, as numpy scalars give it; scikit-learn's searches read scores by it."""
        return self.value

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, draws left out; a number that is not finite becomes None, since JSON has no NaN."""
        found = {k: v for k, v in asdict(self).items() if k != "draws"}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}


def proportion(name: str, hits: int, n: int, protocol: str) -> Score:
    """A share hits / n with Wilson's interval; n = 0 gives NaN, not an error."""
    if n == 0:
        return Score(name, math.nan, math.nan, math.nan, 0, protocol)
    p, z2 = hits / n, Z95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Score(name, p, max(0.0, centre - half), min(1.0, centre + half), n, protocol)


def mean(name: str, values: Sequence[float] | np.ndarray[Any, Any], protocol: str) -> Score:
    """The mean of values with the normal interval of the mean."""
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return Score(name, math.nan, math.nan, math.nan, 0, protocol)
    m = float(x.mean())
    half = Z95 * float(x.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Score(name, m, m - half, m + half, n, protocol)


def show_share(value: float, *, unit: bool = True) -> str:
    """A share in per cent: `31.4 %`."""
    return f"{100 * value:.1f}".replace("-", "−") + ("\u00a0%" if unit else "")


def show_span(low: float, high: float) -> str:
    """An interval of shares: `27.1–35.9 %`."""
    return show_share(low, unit=False) + ("–" if low >= 0 else " to ") + show_share(high)
