"""Figures of audit.json from scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuewise.scores import Score


def series(name: str, x: Sequence[Any], scores: Sequence[Score]) -> dict[str, Any]:
    """One line or group of bars with its intervals."""
    plain = [s.as_dict() for s in scores]
    return {"name": name, "x": list(x), **{a: [p[b] for p in plain] for a, b in AXES.items()}}


AXES = {"y": "value", "low": "low", "high": "high"}


def figure(
    kind: str, title: str, xlabel: str, *drawn: dict[str, Any], ylabel: str = "accuracy"
) -> dict[str, Any]:
    """kind: bars or lines."""
    return {"title": title, "kind": kind, "xlabel": xlabel, "ylabel": ylabel, "series": list(drawn)}
