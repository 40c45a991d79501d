"""`cuewise list`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import Result

TOPIC = "start"


def list_(
    what: Annotated[
        str | None,
        "a kind of things; without one, `cuewise list` says which kinds there are",
    ] = None,
) -> Result:
    """List what there is to choose from.

    cuewise list methods
    cuewise list settings
    """
    from cuewise.catalogue import catalogue

    return Result(catalogue(what))
