"""One row of the performance table: printed by a benchmark, stored and written to docs/performance.md by run.py."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass

MARK = "ROW"


@dataclass(frozen=True)
class Row:
    """What was measured against which peer or bound: one value per interleaved repetition.

    unit  what follows the number: "×", "of its rate", "s", …
    goal  "≤ 1.03" or "≥ 3", in the same unit; empty: none
    note  what else was seen, e.g. how far results are apart
    """

    what: str
    against: str
    values: list[float]
    unit: str = "×"
    goal: str = ""
    note: str = ""

    def result(self) -> str:
        """Median, then the least and the greatest of how many."""
        found = f"{short(statistics.median(self.values))} {self.unit}"
        if len(self.values) > 1:
            low, high = short(min(self.values)), short(max(self.values))
            found += f" ({low} to {high}, {len(self.values)} repetitions)"
        return found + (f"; {self.note}" if self.note else "")

    def met(self) -> bool | None:
        """Whether the median meets the goal; None without one."""
        if not self.goal:
            return None
        sign, number = self.goal.split()
        median = statistics.median(self.values)
        return median <= float(number) if sign == "≤" else median >= float(number)


def short(value: float) -> str:
    """Three digits that count; two decimals and more near one, where ratios are compared."""
    return (
        f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if not 0.8 <= value < 1.3 else f"{value:.3f}"
    )


def row(
    what: str, against: str, values: float | Iterable[float], unit: str = "×", goal: str = "", note: str = ""
) -> None:
    """Print a row for run.py to collect."""
    listed = [float(values)] if isinstance(values, int | float) else [float(v) for v in values]
    print(
        f"{MARK}\t{json.dumps(asdict(Row(what, against, listed, unit, goal, note)), ensure_ascii=False)}",
        flush=True,
    )
