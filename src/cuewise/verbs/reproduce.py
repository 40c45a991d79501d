"""`cuewise reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cuewise.options import COMMAS, One, Several, texts
from cuewise.verbs.arguments import MACHINE, Result, several

TOPIC = "train"


def reproduce(
    *name: Annotated[str, "studies to run (see `cuewise list studies`) [all]"],
    out: Annotated[
        One,
        "folder for the trained arms, results.json, results.md and report.html; a second call continues the first",
    ],
    data: Annotated[Several | None, "shapes, or labelled photographs to learn from [shapes]"] = None,
    val: Annotated[Several | None, "labelled photographs to test on [a fifth of --data, held out]"] = None,
    ood: Annotated[
        Several | None,
        "domains of labelled photographs: a probe is fitted on the first and tested on the others",
    ] = None,
    test: Annotated[
        Several | None,
        "of the study `tune`: stimuli for that classifier, as conflict=DATA, sketch=DATA, silhouette=DATA",
    ] = None,
    budget: Annotated[
        float | None,
        "minutes for all of it together; fewer epochs where needed [as many as the lab is made for]",
    ] = None,
    seeds: Annotated[
        int,
        "runs of every arm, each with its own seed; the same seeds in all arms; fewer than 5 are preliminary",
    ] = 5,
    epochs: Annotated[
        int | None, "of every run [the lab's own; up to four times as many where a study's effect comes late]"
    ] = None,
    jobs: Annotated[str | int, "runs side by side: auto (one per core) or a number", MACHINE] = "auto",
    arms: Annotated[
        str | Sequence[str] | None,
        "names of arms to run, with * for any text; claims that need others are then not measured [all]",
        COMMAS,
    ] = None,
    values: Annotated[
        str | Sequence[Any] | None,
        "of a study that sweeps over something: its values, e.g. 0,0.5,1,2,3,5 for α [the lab's own]",
        COMMAS,
    ] = None,
    precision: Annotated[
        str, "auto (as `pretrain`), 32 or bf16, which is faster on a CPU that computes in it", MACHINE
    ] = "auto",
    method: Annotated[
        str | None,
        "moco or simclr, for studies that are not about a method [simclr on shapes, moco on photographs]",
    ] = None,
    model: Annotated[
        str | None,
        "backbone of all arms that name none, with or without weights; the study `tune` needs one [the lab's small one]",
    ] = None,
    size: Annotated[int | None, "side of the views in pixels, of all arms that name none [32]"] = None,
    generator: Annotated[
        One | None,
        "of the study `adf-supervised`: a run of `pretrain --method pix2pix` at the same size, for an arm with a learned filter",
    ] = None,
    overwrite: Annotated[bool, "start again, the trained arms in --out included"] = False,
) -> Result:
    """Test the papers' claims at lab scale: train, measure over seeds, report which claims hold.

    cuewise reproduce ns-color --out studies/color
    cuewise reproduce --out studies/all --budget 60
    cuewise reproduce ns-alpha --values 0,0.5,1,2,3,5 --out studies/alpha
    """
    from cuewise.studies.run import run_studies

    return Result(
        run_studies(
            name,
            Path(out),
            data=texts(data),
            val=texts(val),
            ood=texts(ood),
            test=texts(test),
            budget=budget,
            seeds=seeds,
            epochs=epochs,
            jobs=str(jobs),
            arms=texts(arms),
            values=several(values),
            precision=precision,
            method=method,
            model=model,
            size=size,
            generator=None if generator is None else str(generator),
            overwrite=overwrite,
        )
    )
