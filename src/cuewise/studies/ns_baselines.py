"""Patch negatives beside texture negatives and four ways to make ordinary negatives harder (claim 12, second half; table 1)."""

from __future__ import annotations

from cuewise.studies.claims import Claim, PairedDifference, above, below
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

HARD = ("mochi", "ifm", "debiased", "hard")


def arms(lab: Lab) -> list[Arm]:
    """All on the lab's main method."""
    own = [
        Arm("no negatives"),
        Arm("patch", lab.negative(lab.alpha)),
        Arm("texture", lab.negative(lab.alpha, "texture")),
    ]
    return own + [Arm(name, {"hard": {"name": name}}) for name in HARD]


def texture_lowers_less(lab: Lab) -> list[PairedDifference]:
    """Claim 12, second half."""
    return [
        below("patch", "no negatives", "similarity/patch"),
        above("texture", "patch", "similarity/patch"),
    ]


def beyond_hard(lab: Lab) -> list[PairedDifference]:
    """Table 1: texture-free accuracy against each of the four."""
    return [above("patch", other, "texture_free") for other in HARD]


STUDY = Study(
    name="ns-baselines",
    summary="Non-semantic negatives beside harder ordinary negatives",
    reference="Table 1 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "similarity", "ood", "corrupted"),
    claims=(
        Claim("12b", "training on texture negatives lowers patch similarity less than training on patches", "B",
              texture_lowers_less),
        Claim("T1", "patch negatives serve texture-free accuracy better than harder ordinary negatives", "C",
              beyond_hard),
    ),
    figures=(
        Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free")),
        Figure("similarity", "Similarity to the query", "arm", "cosine similarity",
               ("similarity/patch", "similarity/texture")),
    ),
)  # fmt: skip
