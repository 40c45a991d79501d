"""`cuewise score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import One
from cuewise.verbs.arguments import Result

TOPIC = "measure"


def score(
    file: Annotated[One, "a CSV with the columns subject,image,shape,texture,response"],
    *,
    audit: Annotated[str, "shape_bias"] = "shape_bias",
    subject: Annotated[str | None, "only this subject [all, each by itself]"] = None,
) -> Result:
    """Score a table of decisions made elsewhere.

    cuewise score decisions.csv
    cuewise score decisions.csv --audit shape_bias --subject resnet50 --json scores.json
    """
    from cuewise.audits.score import score_decisions

    return Result(score_decisions(Path(file), audit=audit, subject=subject))
