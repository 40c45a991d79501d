"""`cuewise compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cuewise.audits import LIMIT
from cuewise.options import OfKind, One, Several, texts, workers_asked
from cuewise.verbs.arguments import (
    Answers,
    Audits,
    ClassMap,
    Device,
    Limit,
    Names,
    Result,
    Seed,
    Size,
    Tests,
    Workers,
    departing,
    optional,
    several,
)

TOPIC = "measure"


def compare(
    *audit: Annotated[One, "run or audit folders"],
    out: Annotated[One, "folder for report.html"],
    train: Annotated[
        Several | None,
        "of runs: labelled images that probes are fitted on [the images they share, where labelled; else shapes]",
    ] = None,
    test: Tests = None,
    only: Audits = None,
    name: Names = None,
    limit: Limit = LIMIT,
    answers: Answers = "auto",
    class_map: ClassMap = None,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = "auto",
    overwrite: Annotated[bool, "replace the report in --out"] = False,
    **options: Annotated[Any, OfKind("audits", "cuewise.audits", "cuewise.audits.audit:AUDITS.get", "only")],
) -> Result:
    """Put several models side by side in one report; runs are audited first, on the images given by --train and --test.

    cuewise compare audits/plain audits/shape --out reports/both
    cuewise compare runs/plain runs/shape --out reports/runs --only shape_bias,accuracy --limit 100
    """
    from cuewise.report.folders import compare_folders

    given: dict[str, Any] = {
        "train": texts(train),
        "test": texts(test),
        "only": several(only),
        "limit": limit,
        "answers": answers,
        "class_map": optional(class_map),
        "size": size,
        "seed": seed,
        "device": device,
        "workers": workers_asked(workers),
    }
    own = {key: optional(value) for key, value in options.items()}
    found = compare_folders(
        [Path(a) for a in audit],
        Path(out),
        overwrite=overwrite,
        names=texts(name),
        typed=departing(compare, {**given, **own}),
        options=own,
        **given,
    )
    return Result(found)
