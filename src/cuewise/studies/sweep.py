"""`--values`: what a study sweeps over, from the shell instead of from the lab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuewise.errors import UserError
from cuewise.studies.labs import Lab
from cuewise.studies.study import Study, Sweep, studies

KINDS: dict[Any, str] = {
    int: "give whole numbers, separated by commas",
    float: "give numbers, separated by commas",
}


def swept(lab: Lab, asked: Sequence[Study], values: Sequence[str]) -> Lab:
    """The lab with these values in place of its own; refused where a study has no sweep."""
    if not values:
        return lab
    sweep = common_sweep(asked)
    found = parsed(sweep, values)
    wrong = "" if len(set(found)) == len(found) > 1 else "give two or more different values"
    if wrong := wrong or sweep.wrong(lab, found):
        raise refused(values, wrong)
    return sweep.put(lab, found)


def common_sweep(asked: Sequence[Study]) -> Sweep:
    """What all of the studies sweep over."""
    found = []
    for study in asked:
        if not isinstance(study.sweep, Sweep):
            able = ", ".join(s.name for s in studies().values() if s.sweep)
            raise UserError(f"--values: the study {study.name} sweeps over nothing; those that do: {able}")
        found.append(study.sweep)
    if any(sweep != found[0] for sweep in found):
        raise UserError(
            f"--values: {' and '.join(s.name for s in asked)} sweep over different things: run one at a time"
        )
    return found[0]


def parsed(sweep: Sweep, values: Sequence[str]) -> list[Any]:
    """In the order that they were given in, numbers in ascending order."""
    try:
        found = [sweep.parse(value) for value in values]
    except ValueError as error:
        raise refused(values, KINDS.get(sweep.parse, str(error))) from None
    return sorted(found) if all(isinstance(v, int | float) for v in found) else found


def refused(values: Sequence[str], why: str) -> UserError:
    return UserError(f"--values {','.join(values)}: {why}")
