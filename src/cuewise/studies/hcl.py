"""Scenes and their objects in hyperbolic space: with the scene–object loss and without it (claims 36 and 37)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

WEIGHTS = (0.0, 0.1)  # λ
WITHOUT, WITH = (f"λ = {w:g}" for w in WEIGHTS)


def arms(lab: Lab) -> list[Arm]:
    """Both see the same views of the same images and are measured in the same ball."""
    return [Arm(f"λ = {w:g}", merge(lab.scenes, {"hcl": {"weight": w}}), "hcl", x=w) for w in WEIGHTS]


def alone(quantity: str, over: float) -> PairedDifference:
    return combined(f"{quantity}: {WITH}", {(WITH, quantity): 1.0}, margin=over)


def farther_out(lab: Lab) -> list[PairedDifference]:
    """Norms of tangent vectors, as the logarithm of a ratio: the two arms have different scales."""
    return [alone("norm/log_ratio", 0.0), above(WITH, WITHOUT, "norm/log_ratio")]


def counted(lab: Lab) -> list[PairedDifference]:
    """A correlation that is there without the loss is not its doing."""
    return [alone("rho", 0.0), above(WITH, WITHOUT, "rho")]


def strangers(lab: Lab) -> list[PairedDifference]:
    return [alone("auroc", 0.5), above(WITH, WITHOUT, "auroc")]


STUDY = Study(
    name="hcl",
    summary="Hyperbolic contrastive learning with λ = 0.1, and without its scene–object loss",
    reference="Section 1.3 of Mishra's thesis; Ge et al. 2023",
    arms=arms,
    measures=("norms", "context", "multilabel"),
    claims=(
        Claim("36", "scenes have a larger norm than their objects, more so than without the scene–object loss", "B",
              farther_out),
        Claim("36b", "the norm of an image grows with the number of objects on it, more so than without", "C", counted),
        Claim("37", "out-of-context objects are farther from their scenes than others: AUROC above 0.5, and above that "
              "without the scene–object loss", "B", strangers),
    ),
    figures=(
        Figure("norms", "Norms", "λ", "tangent norm", ("norm/scene", "norm/object")),
        Figure("context", "Out-of-context objects", "λ", "AUROC", ("auroc", "auroc/cosine")),
    ),
)  # fmt: skip
