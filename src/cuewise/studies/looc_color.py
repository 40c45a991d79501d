"""Colour as a cue: discarded by MoCo's jitter, kept by LooC (claim 31)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

EQUAL = 0.02  # a colour-free accuracy that is lower by less than this counts as equal (or better)


def arms(lab: Lab) -> list[Arm]:
    return [
        Arm("MoCo", lab.colour, method="moco"),
        Arm("LooC", merge(lab.colour, {"leave_out": ["color"]}), method="looc"),
    ]


def colour_kept(lab: Lab) -> list[PairedDifference]:
    return [
        above("LooC", "MoCo", "colour"),
        above("LooC", "MoCo", "clean", margin=-EQUAL, because="equal or better"),
    ]


STUDY = Study(
    name="looc-color",
    summary="A colour task and a colour-free task on MoCo and LooC (colour)",
    reference="Table 2 of Xiao et al. 2021",
    arms=arms,
    measures=("clean", "colour", "disjoint", "ood", "corrupted"),
    claims=(
        Claim(
            "31", "LooC beats MoCo on the colour task and equals it on a colour-free one", "B", colour_kept
        ),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("colour", "clean")),),
)
