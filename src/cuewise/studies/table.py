"""The measured table of a study: arm × seed × quantity, and what can be read off it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.studies.statistics import MONOTONE, agree, spearman, t_interval

Row = NDArray[np.float64]


@dataclass(frozen=True)
class Trend:
    """How a quantity moves along arms: ρ of the means, the paired difference last − first, whether it rises or falls."""

    quantity: str
    rho: float
    differences: tuple[float, ...]
    monotone: bool  # every step of the means in the direction of ρ

    @property
    def rises(self) -> bool:
        return self.rho >= MONOTONE or agree(self.differences)

    @property
    def falls(self) -> bool:
        return self.rho <= -MONOTONE or agree([-d for d in self.differences])

    def __str__(self) -> str:
        same = sum(d > 0 for d in self.differences)
        return (
            f"{self.quantity}: ρ = {self.rho:.2f}, last − first {signed(self.differences)}, "
            f"up in {same} of {len(self.differences)} seeds{'' if self.monotone else ', not monotone'}"
        )


class Table:
    """arm → seed → quantity → value. A quantity that an arm lacks is simply not there."""

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

    def mean(self, arm: str, quantity: str) -> float:
        x = self.row(arm, quantity)
        return float(x.mean()) if len(x) else math.nan

    def interval(self, arm: str, quantity: str) -> tuple[float, float, float]:
        """(mean, low, high) over the seeds."""
        return t_interval(self.row(arm, quantity))

    def difference(self, arm: str, base: str, quantity: str) -> Row:
        """arm − base, seed by seed."""
        a, b = self.row(arm, quantity), self.row(base, quantity)
        return a - b if len(a) == len(b) else np.zeros(0)

    def trend(self, arms: Sequence[str], quantity: str) -> Trend:
        """Along the arms in their order."""
        means = [self.mean(a, quantity) for a in arms]
        steps = np.diff(means)
        rho = spearman(range(len(arms)), means) if len(arms) > 1 else math.nan
        monotone = bool((steps >= 0).all() or (steps <= 0).all())
        ends = self.difference(arms[-1], arms[0], quantity)
        return Trend(quantity, rho, tuple(ends.tolist()), monotone)

    def peak(self, arms: Sequence[str], quantity: str) -> str:
        """The arm with the largest mean."""
        return max(arms, key=lambda a: self.mean(a, quantity))


def signed(differences: Sequence[float] | Row) -> str:
    """ "+0.031 [0.012, 0.050]": the mean of paired differences with its t interval."""
    mean, low, high = t_interval(differences)
    interval = f" [{low:+.3f}, {high:+.3f}]" if math.isfinite(low) else ""
    return f"{mean:+.3f}{interval}"
