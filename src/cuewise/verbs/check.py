"""`cuewise check`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import Result

TOPIC = "share"


def check(
    member: Annotated[
        str, "package.module:Name, or package.module for every member in it, also in the working folder"
    ],
) -> Result:
    """Check a method, cue, negative, augmentation, audit, probe, maker, source, study, measure or clue of your own.

    cuewise check my_methods:Align
    cuewise check my_cues
    """
    from cuewise.checks.check import check_members

    return Result(check_members(member))
