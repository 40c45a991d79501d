"""`cuewise demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cuewise.options import One
from cuewise.verbs.arguments import Result

TOPIC = "start"


def demo(
    *,
    out: Annotated[One, "folder for both runs and report.html"] = "runs/demo",
    overwrite: Annotated[bool, "start again even if --out holds a finished demo"] = False,
) -> Result:
    """Show all of it on embedded images: an encoder, the same one tuned away from texture, both audited, one report.

    cuewise demo
    cuewise demo --out runs/again --overwrite
    """
    from cuewise import compiled

    compiled.begin(["shapes"])  # beside the imports that follow
    from cuewise.story import run_demo

    return Result(run_demo(Path(out), overwrite=overwrite))
