"""BYOL with a patch negative, with a regular one, with both (claim 19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

ARMS = ("BYOL", "patch", "regular", "patch and regular")
STRONG = ("patch, strong", "regular, strong")


def arms(lab: Lab) -> list[Arm]:
    """One negative per query, all with the same weight. Then the same with a weight that shows in a short run; there the
    negatives share the views' batch statistics, so that the network cannot recognise them by their own."""
    a, strong = lab.byol_alpha, lab.byol_strong
    both = {"negatives": ["patch", "regular"], "alpha": [a, a], **lab.patch}
    shared: dict[str, Any] = {"byol": {"statistics": "shared"}}
    settings: dict[str, dict[str, Any]] = dict(
        zip(ARMS, ({}, lab.negative(a), lab.negative(a, "regular"), both))
    )
    settings |= zip(STRONG, (lab.negative(strong, **shared), lab.negative(strong, "regular", **shared)))
    return [Arm(name, s, method="byol") for name, s in settings.items()]


def regular_hurts(patch: str, regular: str) -> Callable[[Lab], list[PairedDifference]]:
    """A regular negative costs clean accuracy, and more than twice what a patch negative costs."""

    def differences(lab: Lab) -> list[PairedDifference]:
        weights = {(patch, "clean"): 2.0, ("BYOL", "clean"): -1.0, (regular, "clean"): -1.0}
        return [
            below(regular, "BYOL", "clean"),
            above(patch, regular, "clean"),
            combined(f"clean: loss with {regular} − 2 × loss with {patch}", weights,
                     because="far more: more than twice"),
        ]  # fmt: skip

    return differences


STUDY = Study(
    name="ns-byol",
    summary="BYOL repelled from patch negatives or from other images",
    reference="Table 7 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "similarity", "ood", "corrupted"),
    claims=(
        Claim("19", "a regular negative hurts BYOL far more than a patch negative of the same weight", "B",
              regular_hurts(*ARMS[1:3])),
        Claim("19s", "the same with a weight that shows in a short run", "C", regular_hurts(*STRONG)),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free")),),
)  # fmt: skip
