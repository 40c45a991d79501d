"""`cuewise probe`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cuewise.options import OfKind, One, Several, texts
from cuewise.verbs.arguments import INPUT, Device, Model, Pretrained, Result, Seed, Size, Space, specified

TOPIC = "measure"


def probe(
    kind: Annotated[
        str,
        "linear, knn, fewshot, rotation, finetune, multilabel, detect or segment (see `cuewise list probes`)",
    ],
    model: Model,
    *,
    train: Annotated[
        Several,
        "labelled images the probe is fitted on; DATA?classes=imagenet100 (or a file) takes some classes",
    ],
    test: Annotated[
        Several | None, "labelled images it is scored on, each set by itself [a fifth of --train, held out]"
    ] = None,
    space: Space = None,
    pretrained: Pretrained = False,
    size: Size = None,
    seed: Seed = 0,
    baseline: Annotated[
        str | None,
        "also measure another MODEL, or random (the same architecture, untrained), and the paired difference",
        INPUT,
    ] = None,
    out: Annotated[
        One | None, "folder for report.html, probe.json, pictures and the checkpoint of detect and segment"
    ] = None,
    resume: Annotated[bool, "continue what was interrupted in --out"] = False,
    overwrite: Annotated[bool, "replace the probe in --out"] = False,
    cache: Annotated[bool, "cache features on disk and reuse them [on]"] = True,
    device: Device = "auto",
    **options: Annotated[Any, OfKind("probes", "cuewise.probes", "cuewise.probes.kinds:PROBES.get")],
) -> Result:
    """Score an encoder on labelled images, frozen or fine-tuned.

    cuewise probe linear runs/plain --train photos
    cuewise probe knn runs/plain --train photos --test sketches --k 5
    cuewise probe segment runs/plain --train shapes:scenes?n=64 --baseline random --out probes/pixels
    """
    from cuewise.errors import UserError
    from cuewise.probes.run import run_probe
    from cuewise.report.probe import probe_into

    asked, fitted, tested = specified(model, space, pretrained), texts(train), texts(test)
    given: dict[str, Any] = {"train": fitted, "test": tested, "size": size, "seed": seed, "device": device}
    given |= {"keep": cache, "baseline": baseline, **options}
    if out is None:
        if resume or overwrite:
            raise UserError(
                "--resume and --overwrite belong to --out DIR, where a probe keeps what it has done"
            )
        return Result(run_probe(kind, asked, out=None, **given))
    reads = [str(model)] if isinstance(model, str | Path) else []
    images = [*fitted, *tested, *texts(options.get("masks"))]
    found = probe_into(
        kind, asked, Path(out), resume=resume, overwrite=overwrite, reads=reads, images=images, **given
    )
    return Result(found)
