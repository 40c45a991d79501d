"""What every cue promises: the checks of cuewise.cues.contract, on a cue with its default options."""

from __future__ import annotations

from functools import wraps

from cuewise.checks.check import Check
from cuewise.cues import contract


def _on_defaults(check: Check) -> Check:
    @wraps(check)
    def run(kind: type) -> None:
        check(kind())

    return run


CHECKS: tuple[Check, ...] = tuple(_on_defaults(check) for check in contract.CHECKS)
