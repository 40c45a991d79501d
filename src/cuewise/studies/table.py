"""The measured table of a study: arm × seed × quantity, and what can be read off it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cuewise.studies.statistics import t_interval

Row = NDArray[np.float64]


class Table:
    """arm → seed → quantity → value. A quantity that an arm lacks is absent."""

    def __init__(self, values: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
        self.values = values

    @property
    def arms(self) -> list[str]:
        return list(self.values)

    @property
    def quantities(self) -> list[str]:
        seen = {q: None for seeds in self.values.values() for found in seeds.values() for q in found}
        return list(seen)

    def row(self, arm: str, quantity: str) -> Row:
        """The values of all seeds, in their order; empty where any of them is missing."""
        found = [m.get(quantity, math.nan) for m in self.values.get(arm, {}).values()]
        x = np.array(found, np.float64)
        return x if len(x) and np.isfinite(x).all() else np.zeros(0)

    def has(self, arms: Sequence[str], *quantities: str) -> bool:
        return bool(arms) and all(len(self.row(a, q)) for a in arms for q in quantities)

    def interval(self, arm: str, quantity: str) -> tuple[float, float, float]:
        """(mean, low, high) over the seeds."""
        return t_interval(self.row(arm, quantity))

    def difference(self, arm: str, base: str, quantity: str) -> Row:
        """arm − base, seed by seed."""
        a, b = self.row(arm, quantity), self.row(base, quantity)
        return a - b if len(a) == len(b) else np.zeros(0)
