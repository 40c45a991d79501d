"""Without colour jitter an image can be recognised by its colours: do patch negatives close that shortcut? (claim 17)"""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

ARMS = ("jitter", "jitter, patch", "no jitter", "no jitter, patch")


def arms(lab: Lab) -> list[Arm]:
    """Two by two, on views in colour."""
    patch = lab.negative(lab.alpha)
    no = {"color_jitter": False}
    settings: tuple[dict[str, Any], ...] = ({}, patch, no, merge(no, patch))
    return [Arm(name, merge(lab.colour, s)) for name, s in zip(ARMS, settings)]


def interaction(lab: Lab) -> list[PairedDifference]:
    """The gain in clean accuracy without jitter, against that with it."""

    def gains(times: float) -> dict[tuple[str, str], float]:
        weights = {"no jitter, patch": 1.0, "no jitter": -1.0, "jitter, patch": -times, "jitter": times}
        return {(arm, "clean"): w for arm, w in weights.items()}

    return [
        above("no jitter, patch", "no jitter", "clean"),
        combined("clean: gain without jitter − gain with it", gains(1)),
        combined(
            "clean: gain without jitter − 2 × gain with it", gains(2), because="much larger: more than twice"
        ),
    ]


STUDY = Study(
    name="ns-color",
    summary="Patch negatives with and without colour jitter",
    reference="Table 3 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(
        Claim(
            "17",
            "without colour jitter the gain from patch negatives is much larger than with it",
            "B",
            interaction,
        ),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free")),),
)
