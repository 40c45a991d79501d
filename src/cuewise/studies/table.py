"""The measured table of a study: arm × seed × quantity, and what can be read off it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cuewise.probes.draws import DRAWS, scatter
from cuewise.studies.statistics import t_interval

Row = NDArray[np.float64]
Cell = tuple[str, str]  # arm, quantity
DRAWN = "draw/"  # a quantity whose probe saw a draw of its training images only; the same draws in all arms and seeds


def of_draw(number: int, quantity: str) -> str:
    """The name of a quantity on one draw of the probe's training images."""
    return f"{DRAWN}{number}/{quantity}"


class Table:
    """arm → seed → quantity → value. A quantity that an arm lacks is absent."""

    def __init__(self, values: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
        self.values = values

    @property
    def arms(self) -> list[str]:
        return list(self.values)

    @property
    def quantities(self) -> list[str]:
        """What was measured, draws left out."""
        seen = {q: None for seeds in self.values.values() for found in seeds.values() for q in found}
        return [q for q in seen if not q.startswith(DRAWN)]

    def row(self, arm: str, quantity: str) -> Row:
        """The values of all seeds, in their order; empty where any of them is missing."""
        found = [m.get(quantity, math.nan) for m in self.values.get(arm, {}).values()]
        x = np.array(found, np.float64)
        return x if len(x) and np.isfinite(x).all() else np.zeros(0)

    def lacking(self, arm: str, quantity: str) -> list[int]:
        """The seeds without a number, where other seeds have one."""
        found = {s: math.isfinite(m.get(quantity, math.nan)) for s, m in self.values.get(arm, {}).items()}
        return [s for s, measured in found.items() if not measured] if any(found.values()) else []

    def has(self, arms: Sequence[str], *quantities: str) -> bool:
        return bool(arms) and all(len(self.row(a, q)) for a in arms for q in quantities)

    def interval(self, arm: str, quantity: str) -> tuple[float, float, float]:
        """(mean, low, high)."""
        return self.interval_of([(arm, quantity)], lambda row: row)

    def difference(self, arm: str, base: str, quantity: str) -> tuple[float, float, float]:
        """The interval of arm − base, paired by seed and by draw."""
        return self.interval_of([(arm, quantity), (base, quantity)], np.subtract)

    def interval_of(self, cells: Sequence[Cell], of: Callable[..., Row]) -> tuple[float, float, float]:
        """(mean, low, high) of a value per seed: over seeds, and over the training images of its probes.

        All seeds share those images, so that more seeds do not make their part smaller: it is added as it is.
        """
        rows = [self.row(arm, quantity) for arm, quantity in cells]
        if not all(len(r) for r in rows) or len({len(r) for r in rows}) > 1:
            return math.nan, math.nan, math.nan
        mean, low, high = t_interval(of(*rows))
        extra = scatter([float(np.mean(of(*rows))) for rows in self._redrawn(cells)])
        return (mean, mean - math.hypot(mean - low, extra), mean + math.hypot(high - mean, extra))

    def _redrawn(self, cells: Sequence[Cell]) -> list[list[Row]]:
        """The rows of the cells on each draw; a quantity without a probe is the same on all. Empty without draws."""
        if not self.draws(cells):
            return []
        out = []
        for number in range(DRAWS):
            rows = [self.row(arm, of_draw(number, quantity)) for arm, quantity in cells]
            out.append([r if len(r) else self.row(*cell) for r, cell in zip(rows, cells)])
        return out

    def draws(self, cells: Sequence[Cell]) -> int:
        """On how many draws of training images the cells were measured; 0 where none of them has a probe."""
        return DRAWS if any(len(self.row(arm, of_draw(0, quantity))) for arm, quantity in cells) else 0
