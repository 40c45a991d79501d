"""A laboratory of seconds: two arms, two steps each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cuewise import reproduce
from cuewise.options import options_of
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import SHAPES, Lab
from cuewise.studies.run import run_studies
from cuewise.studies.study import Arm, Figure, Study

SMALL = "part=test&size=32"
LAB = replace(
    SHAPES,
    base={
        "data": ["shapes:aligned?rho=1&n=64&size=32"],
        "model": "cuewise/resnet-tiny?width=8",
        "size": 32,
        "epochs": 1,
        "batch_size": 32,
        "loop": {"log_every": 1},
    },
    sets={
        "probe": ["shapes:aligned?rho=1&n=64&size=32"],
        "clean": [f"shapes:aligned?rho=1&n=32&{SMALL}"],
        "conflict": [f"shapes:conflict?n=32&{SMALL}"],
    },
)


def arms(lab: Lab) -> list[Arm]:
    return [Arm("plain", x=0), Arm("patch", lab.negative(1.0), x=1)]


def patches_help(lab: Lab) -> list[PairedDifference]:
    return [above("patch", "plain", "clean")]


def unmeasured(lab: Lab) -> list[PairedDifference]:
    return [above("patch", "plain", "cue/sketch")]


STUDY = Study(
    name="tiny",
    summary="Two arms",
    arms=arms,
    measures=("clean", "conflict", "cues"),  # the lab has no sets for the last one
    claims=(
        Claim("1", "patches help | a little", "B", patches_help),
        Claim("2", "nobody can tell", "C", unmeasured),
    ),
    figures=(Figure("clean", "Clean", "α", "accuracy", ("clean",), lambda lab: {"": ["plain", "patch"]}),),
)
LONG: Lab = replace(LAB, base={**LAB.base, "epochs": 20})


def studied(names: Sequence[str | Study], out: Path, **options: Any) -> dict[str, Any]:
    """Run in the laboratory above, with what `reproduce` declares for all that is not given."""
    declared = (o for o in options_of(reproduce).values() if not o.required)
    usual = {o.name: o.default if o.many is None else [] for o in declared}
    return run_studies(names, out, **{"lab": LAB, **usual, **options})
