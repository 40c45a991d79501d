"""CAN, MAE and SimCLR-ViT on images of which few classes have most (CAN on skewed data)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.studies import can
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

RATIO = 100  # images of the most frequent class to those of the rarest
ARMS = ("CAN", "MAE", "SimCLR-ViT")


def arms(lab: Lab) -> list[Arm]:
    """The lab's images, thinned out class by class; the probe sees all of them."""
    skewed = {"data": [f"{spec}{'&' if '?' in spec else '?'}longtail={RATIO}" for spec in lab.base["data"]]}
    return [arm for arm in can.arms(lab, skewed) if arm.name in ARMS]


def still_best(lab: Lab) -> list[PairedDifference]:
    return [above("CAN", other, "clean") for other in ARMS[1:]]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": ARMS}


STUDY = Study(
    name="can-longtail",
    summary="CAN, MAE and SimCLR-ViT pretrained on a long tail of classes",
    reference="Section 1.4 of Mishra's thesis",
    arms=arms,
    measures=("clean", "knn", "conflict", "corrupted"),
    claims=(
        Claim("38b", "pretrained on a long tail, CAN probes better than MAE and SimCLR-ViT", "C", still_best),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "knn"), groups),),
    times=4,
)
