"""Figures and tables of audit.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.scores import Score

AXES = {"y": "value", "low": "low", "high": "high"}


def series(name: str, x: Sequence[Any], scores: Sequence[Score]) -> dict[str, Any]:
    """One line or group of bars with its intervals."""
    plain = [s.as_dict() for s in scores]
    return {"name": name, "x": list(x), **{a: [p[b] for p in plain] for a, b in AXES.items()}}


def histogram(
    name: str, values: NDArray[Any], bins: int | NDArray[Any], low: float = 0.0, high: float = 1.0
) -> dict[str, Any]:
    """A series of shares of the values in equal bins from `low` to `high`, or between the edges that `bins` gives."""
    counts, edges = np.histogram(values, bins, (low, high))
    return {"name": name, "x": edges.round(6).tolist(), "y": (counts / max(1, len(values))).tolist()}


def figure(
    kind: str, title: str, xlabel: str, *drawn: dict[str, Any], ylabel: str = "accuracy", **more: Any
) -> dict[str, Any]:
    """kind: bars, lines or histogram; `more` is what a report reads beside the series: facet, diagonal, note."""
    return {"title": title, "kind": kind, "xlabel": xlabel, "ylabel": ylabel, "series": list(drawn), **more}


def table(title: str, columns: Sequence[str], rows: Sequence[Any], **more: Any) -> dict[str, Any]:
    """`more`: pairs (score → the column by which models are compared image by image), and what else a report reads."""
    return {"title": title, "columns": list(columns), "rows": list(rows), **more}
