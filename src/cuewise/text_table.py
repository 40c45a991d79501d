"""Tables for a terminal: columns below each other, numbers and counts as text."""

from __future__ import annotations

import math


def aligned(cells: list[list[str]]) -> str:
    """Lines whose columns begin below each other."""
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in cells)


def number(value: float | None) -> str:
    """Four decimals; a dash for what was not measured."""
    return "   –  " if value is None or not math.isfinite(value) else f"{value:.4f}"


def image_counts(counts: list[int | None]) -> str:
    """The n of each model, once where it is the same."""
    return " / ".join(dict.fromkeys("–" if c is None else f"{c:,}" for c in counts))
