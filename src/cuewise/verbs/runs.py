"""`cuewise runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import One
from cuewise.verbs.arguments import Result

TOPIC = "train"


def runs(
    folder: Annotated[One | None, "where to look for run folders, at any depth [runs]"] = None,
) -> Result:
    """List run folders: finished, running or stopped, with their dials and last scores.

    cuewise runs
    cuewise runs runs --json runs.json
    """
    from cuewise.train.listing import list_runs

    return Result(list_runs(Path(folder or "runs")))
