"""`cuewise audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cuewise.options import OfKind, One, Several, texts
from cuewise.verbs.arguments import (
    Address,
    Answers,
    Audits,
    ClassMap,
    Device,
    Engine,
    Limit,
    Model,
    Names,
    Pretrained,
    Result,
    Seed,
    Size,
    Space,
    Tests,
    Workers,
    optional,
    several,
    specified,
)

TOPIC = "measure"


def audit(
    *model: Model,
    out: Annotated[One, "folder for audit.json, report.html and pictures"],
    train: Annotated[
        Several | None,
        "labelled images that probes are fitted on; DATA?classes=imagenet100 (or a file) takes some classes [shapes]",
    ] = None,
    test: Tests = None,
    only: Audits = None,
    name: Names = None,
    limit: Limit = 200,
    answers: Answers = "auto",
    class_map: ClassMap = None,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = "auto",
    engine: Engine = "local",
    address: Address = None,
    overwrite: Annotated[bool, "replace the audit in --out"] = False,
    **options: Annotated[Any, OfKind("audits", "cuewise.audits", "cuewise.audits.audit:AUDITS", "only")],
) -> Result:
    """Measure which cues models rely on, and write a report.

    cuewise audit runs/plain --out audits/plain
    cuewise audit runs/plain runs/shape --out audits/both --train photos --test sketches --only accuracy,shape_bias
    """
    from cuewise.audits.run import audit_models, comparison, finish
    from cuewise.audits.saved import unfinished
    from cuewise.folders import claim_folder
    from cuewise.report.folders import report_audits

    place, sets = Path(out), (texts(train), texts(test))
    reads = [*(str(m) for m in model if isinstance(m, str | Path)), *sets[0], *sets[1]]
    with claim_folder(place, "audit", resume=unfinished(place), overwrite=overwrite, reads=reads) as claim:
        if claim.resuming:
            print(f"{out}: resuming an interrupted audit", file=sys.stderr, flush=True)
        found = audit_models(
            [specified(m, space, pretrained) for m in model],
            place,
            train=sets[0],
            test=sets[1],
            only=several(only),
            size=size,
            seed=seed,
            device=device,
            limit=limit,
            answers=answers,
            class_map=optional(class_map),
            options={name: optional(value) for name, value in options.items()},
            workers=None if workers == "auto" else int(workers),
            engine=engine,
            address=address,
            unfinished=True,
            started=claim.started,
            names=texts(name) or None,
        )
        result = report_audits(found, place)
        claim.finished()
        finish(place)
    return {**result, **comparison([document for _, document in found])}
