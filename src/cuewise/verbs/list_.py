"""`cuewise list`."""

from __future__ import annotations

from typing import Annotated

TOPIC = "start"


def list_(
    what: Annotated[
        str,
        "methods, models, negatives, filters (or cues), augmentations, audits, makers, probes, recipes, studies, measures, data "
        "or settings",
    ],
) -> dict[str, str]:
    """List what there is to choose from.

    cuewise list methods
    cuewise list settings
    """
    from cuewise.catalogue import catalogue

    return catalogue(what)
