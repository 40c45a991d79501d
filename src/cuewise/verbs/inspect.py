"""`cuewise inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cuewise.options import COMMAS, One, Several
from cuewise.verbs.arguments import Result, Seed, Workers, joined, optional, several

TOPIC = "images"


def inspect(
    *data: Annotated[
        Several,
        "folders, archives, shards or data sets of images, each a set of its own; DATA?classes=imagenet100 takes some classes",
    ],
    out: Annotated[One, "folder for inspect.json and report.html"],
    only: Annotated[
        str | Sequence[str] | None,
        "clues to judge, separated by commas (see `cuewise list clues`) [all]",
        COMMAS,
    ] = None,
    masks: Annotated[
        One | None,
        "masks named as the images, white where the object is, for the clue silhouette [what DATA knows]",
    ] = None,
    mask_value: Annotated[int | None, "the value of an object's pixels in --masks, for index images"] = None,
    seed: Seed = 0,
    workers: Workers = "auto",
    overwrite: Annotated[bool, "replace the inspection in --out"] = False,
) -> Result:
    """Find what a labelled image set gives away: single cues that predict the labels, copies, broken files.

    cuewise inspect photos --out inspections/photos
    cuewise inspect photos sketches --out inspections/both --only color,size,file
    """
    from cuewise.report.inspect_folders import inspect_data

    return Result(
        inspect_data(
            joined(data),
            Path(out),
            only=several(only),
            seed=seed,
            workers=workers,
            masks=optional(masks),
            mask_value=mask_value,
            overwrite=overwrite,
        )
    )
