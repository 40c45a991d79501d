"""One row of the performance table: printed by a benchmark, collected by run.py."""

from __future__ import annotations

MARK = "ROW"


def row(what: str, against: str, result: str) -> None:
    """What was measured, against which peer or bound, and the ratio."""
    print("\t".join((MARK, what, against, result)), flush=True)
