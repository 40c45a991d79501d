"""Add-one against leave-one-out: an embedding space whose views get one augmentation, or all but one (claim 33)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

CLEARLY = 0.02  # a third of the paper's gap (81.1 against 74.9 %)


def arms(lab: Lab) -> list[Arm]:
    """Colour is the augmentation."""
    color = merge(lab.colour, {"leave_out": ["color"]})
    return [
        Arm("MoCo", lab.colour, method="moco"),
        Arm("LooC", color, method="looc"),
        Arm("AddOne", color, method="addone"),
    ]


def add_one_is_worse(lab: Lab) -> list[PairedDifference]:
    return [above("LooC", "AddOne", "clean", margin=CLEARLY, because="clearly")]


STUDY = Study(
    name="looc-addone",
    summary="Add-one and leave-one-out views of colour",
    reference="appendix E of Xiao et al. 2021",
    arms=arms,
    measures=("clean", "colour", "disjoint", "ood", "corrupted"),
    claims=(Claim("33", "add-one with colour is clearly worse than leave-one-out", "B", add_one_is_worse),),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "colour")),),
)
