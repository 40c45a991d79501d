"""`--values`: the constants that a study sweeps over, from the shell instead of from the lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cuewise.cues.patches import parse_range
from cuewise.errors import UserError
from cuewise.studies.labs import Lab
from cuewise.studies.study import Study, studies


def swept(lab: Lab, asked: Sequence[Study], values: Sequence[str]) -> Lab:
    """The lab with these values in place of its own; refused where a study has no sweep."""
    if not values:
        return lab
    for study in asked:
        if not study.sweep:
            able = ", ".join(s.name for s in studies().values() if s.sweep)
            raise UserError(f"--values: the study {study.name} sweeps over nothing; those that do: {able}")
    names = list(dict.fromkeys(s.sweep for s in asked))
    if len(names) > 1:
        raise UserError(
            f"--values: {' and '.join(s.name for s in asked)} sweep over different things: run one at a time"
        )
    found = parsed(names[0], values)
    if len(found) < 2 or len(set(found)) < len(found):
        raise UserError(f"--values {','.join(values)}: give two or more different values")
    tuned = [s.name for s in asked if s.tunes]
    if tuned and lab.alpha not in found:
        raise UserError(
            f"--values {','.join(values)}: {tuned[0]} compares at α = {lab.alpha:g}, which must be among them"
        )
    own: dict[str, Any] = {names[0]: found}
    return replace(lab, **own)


def parsed(name: str, values: Sequence[str]) -> tuple[Any, ...]:
    """Weights from 0 up, lengths of a queue, or intervals such as 5:12."""
    try:
        if name == "patch_ranges":
            for value in values:
                parse_range(value)
            return tuple(values)
        numbers: list[float] = sorted(int(v) if name == "banks" else float(v) for v in values)
    except ValueError:
        kind = "whole numbers" if name == "banks" else "numbers"
        raise UserError(f"--values {','.join(values)}: give {kind}, separated by commas") from None
    if name == "banks" and numbers[0] < 1:
        raise UserError(f"--values {','.join(values)}: a queue holds 1 key or more")
    if name == "alphas" and numbers[0] != 0:
        raise UserError(
            f"--values {','.join(values)}: start with 0, the arm without negatives, and no weight below it"
        )
    return tuple(numbers)
