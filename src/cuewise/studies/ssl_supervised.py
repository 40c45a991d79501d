"""Encoders trained without labels beside one that is trained with them, on the same images for as many steps (claim 40)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, crossed
from cuewise.studies.labs import QUICK, Lab
from cuewise.studies.study import Arm, Figure, Study

WITHOUT = {"MoCo": "moco", "BYOL": "byol"}
WITH = "supervised"


def arms(lab: Lab) -> list[Arm]:
    """One optimiser and batch for all, whatever the lab has for a method."""
    named = {WITH: "supervised", **WITHOUT}
    return [Arm(name, merge(QUICK, {"optim": {"warmup_share": 0}}), method) for name, method in named.items()]


def more_shape(lab: Lab) -> list[PairedDifference]:
    return [above(name, WITH, "shape_bias") for name in WITHOUT]


def more_robust(lab: Lab) -> list[PairedDifference]:
    """What accuracy loses under corruption: the arms start from different accuracies."""
    return [
        crossed(f"loss under corruption: {WITH} − {name}", name, WITH, "corrupted", "clean")
        for name in WITHOUT
    ]


STUDY = Study(
    name="ssl-supervised",
    summary="MoCo and BYOL beside supervised training with equal data and steps",
    reference="the abstract of Mishra's thesis",
    arms=arms,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(
        Claim("40a", "trained without labels, an encoder has a higher shape bias", "C", more_shape),
        Claim("40b", "and loses less accuracy under corruption", "C", more_robust),
    ),
    figures=(Figure("accuracy", "Cues and corruption", "", "share", ("clean", "corrupted", "shape_bias", "texture_free")),),
)  # fmt: skip
