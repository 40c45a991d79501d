"""`cuewise transfer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import One, texts
from cuewise.verbs.arguments import Device, Model, Names, Pretrained, Result, Seed, specified

TOPIC = "measure"


def transfer(
    *model: Model,
    out: Annotated[One, "folder for transfer.json and report.html; a second call continues the first"],
    suite: Annotated[One, "small (embedded images, minutes on a CPU), or a YAML list of tasks"] = "small",
    name: Names = None,
    pretrained: Pretrained = False,
    seed: Seed = 0,
    device: Device = "auto",
    overwrite: Annotated[bool, "start again, finished tasks in --out included"] = False,
) -> Result:
    """Put several encoders through a list of downstream tasks: one table, one report.

    cuewise transfer runs/plain runs/shape --out transfers/both
    cuewise transfer runs/plain cuewise/resnet-tiny --suite tasks.yaml --out transfers/mine --name plain random
    """
    from cuewise.suites.run import run_transfer

    return Result(
        run_transfer(
            [specified(m, None, pretrained) for m in model],
            Path(out),
            suite=str(suite),
            names=texts(name),
            seed=seed,
            device=device,
            overwrite=overwrite,
        )
    )
