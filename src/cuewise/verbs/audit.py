"""`cuewise audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cuewise.audits import LIMIT
from cuewise.options import OfKind, One, Several, texts, workers_asked
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
    Prompts,
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
    limit: Limit = LIMIT,
    answers: Answers = "auto",
    class_map: ClassMap = None,
    prompts: Prompts = None,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = "auto",
    engine: Engine = "local",
    address: Address = None,
    overwrite: Annotated[bool, "replace the audit in --out"] = False,
    **options: Annotated[Any, OfKind("audits", "cuewise.audits", "cuewise.audits.audit:AUDITS.get", "only")],
) -> Result:
    """Measure which cues models rely on, and write a report.

    cuewise audit runs/plain --out audits/plain
    cuewise audit runs/plain runs/shape --out audits/both --train photos --test sketches --only accuracy,shape_bias
    """
    from cuewise.report.folders import audit_into

    sets = {"train": texts(train), "test": texts(test)}
    return Result(
        audit_into(
            [specified(m, space, pretrained) for m in model],
            Path(out),
            overwrite=overwrite,
            reads=[str(m) for m in model if isinstance(m, str | Path)],
            **sets,
            only=several(only),
            size=size,
            seed=seed,
            device=device,
            limit=limit,
            answers=answers,
            class_map=optional(class_map),
            prompts=optional(prompts),
            options={name: optional(value) for name, value in options.items()},
            workers=workers_asked(workers),
            engine=engine,
            address=address,
            names=texts(name) or None,
        )
    )
