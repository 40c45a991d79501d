"""What a claim is: the paired differences that decide it, and the verdict that their intervals allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cuewise.studies.labs import Lab
from cuewise.studies.table import Cell, Row, Table

ENOUGH_SEEDS = 5  # with fewer, intervals are so wide that only large effects can hold
HELD, LEANING, NOT_HELD, OPPOSITE = "held", "leaning", "not held", "opposite"
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class PairedDifference:
    """One number per seed that a claim depends on. The claim says: sign × value > margin.

    of: the rows of `cells` (a value per seed each) → a value per seed.
    margin: in the claimed direction; `because` gives the word of the paper that it stands for.
    """

    label: str
    cells: tuple[Cell, ...]
    of: Callable[..., Row]
    sign: int = 1
    margin: float = 0.0
    because: str = ""

    @property
    def claimed(self) -> str:
        """ "> 0", "< 0", "> 0.02 (clearly)"."""
        return f"{'>' if self.sign > 0 else '<'} {self.sign * self.margin + 0.0:g}" + (
            f" ({self.because})" if self.because else ""
        )


@dataclass(frozen=True)
class Outcome:
    """A decisive difference as measured: mean and 95 % interval over seeds and over training images of probes."""

    difference: PairedDifference
    mean: float
    low: float
    high: float

    @property
    def _claimed(self) -> tuple[float, float, float]:
        """(mean, low, high) counted in the claimed direction."""
        if self.difference.sign > 0:
            return self.mean, self.low, self.high
        return -self.mean, -self.high, -self.low

    @property
    def verdict(self) -> str:
        mean, low, high = self._claimed
        margin = self.difference.margin
        if low > margin:
            return HELD
        if high < min(margin, 0.0):
            return OPPOSITE
        return LEANING if mean > margin else NOT_HELD

    def __str__(self) -> str:
        return f"{self.difference.label} {interval_text(self.mean, self.low, self.high)}, claimed {self.difference.claimed}"

    def as_dict(self) -> dict[str, Any]:
        d = self.difference
        return {"label": d.label, "claimed": d.claimed, "mean": self.mean, "low": self.low, "high": self.high,
                "verdict": self.verdict}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The word, and the outcomes behind it (none where the lab cannot measure them)."""

    word: str
    outcomes: tuple[Outcome, ...] = ()
    seeds: int = 0
    draws: int = 0  # of the training images of probes that the intervals are over as well
    why: str = "not measured in this lab"  # there are no outcomes

    @property
    def over(self) -> str:
        """What the intervals are over: "5 seeds", "5 seeds, 8 draws of the probe's training images"."""
        more = f", {self.draws} draws of the probe's training images" if self.draws else ""
        return f"{self.seeds} seed{'s' * (self.seeds != 1)}{more}"

    @property
    def numbers(self) -> str:
        if not self.outcomes:
            return self.why
        return "; ".join(map(str, self.outcomes)) + f" ({self.over})"


@dataclass(frozen=True)
class Claim:
    """A claim of the papers. `strength`: A should hold, B is expected, C may need scale."""

    number: str
    sentence: str
    strength: str
    differences: Callable[[Lab], Sequence[PairedDifference]]

    def judge(self, table: Table, lab: Lab) -> Verdict:
        """held: every interval is beyond its margin; leaning: every mean is; opposite: every interval is on the other side."""
        outcomes, seeds, draws = [], 0, 0
        for d in self.differences(lab):
            rows = [table.row(arm, quantity) for arm, quantity in d.cells]
            if lacking := [cell for cell in d.cells if table.lacking(*cell)]:
                return Verdict(NOT_MEASURED, why="; ".join(no_number(table, *cell) for cell in lacking))
            if not all(len(r) for r in rows) or len({len(r) for r in rows}) > 1:
                return Verdict(NOT_MEASURED)
            seeds, draws = len(rows[0]), max(draws, table.draws(d.cells))
            mean, low, high = table.interval_of(d.cells, d.of)
            if low == high and seeds < ENOUGH_SEEDS:
                low = high = math.nan  # equal numbers of a few seeds are no certainty
            outcomes.append(Outcome(d, mean, low, high))
        return Verdict(word_of([f.verdict for f in outcomes]), tuple(outcomes), seeds, draws)


def no_number(table: Table, arm: str, quantity: str) -> str:
    """ "no number for shape_bias of α = 2 with seeds 3, 4"."""
    seeds = table.lacking(arm, quantity)
    return f"no number for {quantity} of {arm} with seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def word_of(verdicts: Sequence[str]) -> str:
    """The verdict on a claim from those on its decisive differences."""
    if not verdicts:
        return NOT_MEASURED
    if all(v == HELD for v in verdicts):
        return HELD
    if all(v in (HELD, LEANING) for v in verdicts):
        return LEANING
    return OPPOSITE if all(v == OPPOSITE for v in verdicts) else NOT_HELD


def above(
    arm: str, base: str, quantity: str, sign: int = 1, *, margin: float = 0.0, because: str = ""
) -> PairedDifference:
    """`quantity` of `arm` minus that of `base`, paired by seed; sign −1 where the claim says that it falls."""
    return PairedDifference(
        f"{quantity}: {arm} − {base}", ((arm, quantity), (base, quantity)), np.subtract, sign, margin, because
    )


def below(arm: str, base: str, quantity: str) -> PairedDifference:
    """The same where the claim says that `arm` is lower."""
    return above(arm, base, quantity, -1)


def steps(arms: Sequence[str], quantity: str, sign: int) -> list[PairedDifference]:
    """Monotone: every arm against the one before it."""
    return [above(b, a, quantity, sign) for a, b in pairwise(arms)]


def combined(
    label: str, weights: Mapping[Cell, float], *, margin: float = 0.0, because: str = ""
) -> PairedDifference:
    """A weighted sum of cells, claimed to be above the margin."""
    w = np.array(list(weights.values()))
    return PairedDifference(
        label, tuple(weights), lambda *rows: w @ np.stack(rows), margin=margin, because=because
    )


def crossed(label: str, arm: str, base: str, first: str, second: str) -> PairedDifference:
    """How much more `arm` gains over `base` in one quantity than in another."""
    signs = ((arm, first, 1.0), (arm, second, -1.0), (base, first, -1.0), (base, second, 1.0))
    return combined(label, {(name, quantity): sign for name, quantity, sign in signs})


def few_seeds(seeds: int) -> str:
    """What to say where there are fewer seeds than a verdict should stand on; empty otherwise."""
    if seeds >= ENOUGH_SEEDS:
        return ""
    return (
        f"{seeds} seed{'s' * (seeds != 1)}, and {ENOUGH_SEEDS} or more are needed: intervals are wide, so that few claims "
        "can be held; take the verdicts as preliminary"
    )


def interval_text(mean: float, low: float, high: float) -> str:
    """ "+0.031 [+0.012, +0.050]"; without the interval for a single seed."""
    return f"{mean:+.3f}" + (f" [{low:+.3f}, {high:+.3f}]" if math.isfinite(low) else "")
