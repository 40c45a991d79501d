"""`cuewise probe`."""

from __future__ import annotations

from typing import Annotated, Any

from cuewise.options import OfKind, Several, texts
from cuewise.verbs.arguments import Device, Model, Pretrained, Result, Seed, Size, Space, specified

TOPIC = "measure"


def probe(
    kind: Annotated[
        str, "linear, knn, fewshot, rotation, finetune or multilabel (see `cuewise list probes`)"
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
    cache: Annotated[bool, "keep features on disk and use them again (--no-cache does not) [on]"] = True,
    device: Device = "auto",
    **options: Annotated[Any, OfKind("probes", "cuewise.probes", "cuewise.probes.kinds:PROBES")],
) -> Result:
    """Score an encoder on labelled images: what its features know, or what it learns from there.

    cuewise probe linear runs/plain --train photos
    cuewise probe knn runs/plain --train photos --test sketches --k 5
    """
    from cuewise.probes.run import run_probe

    return run_probe(
        kind,
        specified(model, space, pretrained),
        train=texts(train),
        test=texts(test),
        size=size,
        seed=seed,
        device=device,
        keep=cache,
        **options,
    )
