"""`cuewise list`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import Result

TOPIC = "start"


def list_(
    what: Annotated[
        str | None,
        "methods, models, negatives, filters (or cues), augmentations, audits, clues, makers, probes, recipes, studies, "
        "measures, data or settings [says what each of them is]",
    ] = None,
) -> Result:
    """List what there is to choose from.

    cuewise list methods
    cuewise list settings
    """
    from cuewise.catalogue import catalogue

    return Result(catalogue(what))
