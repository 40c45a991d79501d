"""BYOL with a patch negative, with a regular one, with both (claim 19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed

ARMS = ("BYOL", "patch", "regular", "patch and regular")


def arms(lab: Lab) -> list[Arm]:
    """One negative a query, all with the same weight."""
    a = lab.byol_alpha
    both = {"negatives": ["patch", "regular"], "alpha": [a, a], **lab.patch}
    settings: tuple[dict[str, Any], ...] = ({}, lab.negative(a), lab.negative(a, "regular"), both)
    return [Arm(name, s, method="byol") for name, s in zip(ARMS, settings)]


def regular_hurts(t: Table, lab: Lab) -> Verdict:
    """The drop from a regular negative is more than twice that from a patch negative."""
    if not t.has(ARMS[:3], "clean"):
        return NOT_MEASURED
    patch, regular = (t.difference(n, "BYOL", "clean") for n in ("patch", "regular"))
    more = bool(-regular.mean() > 2 * max(0.0, -float(patch.mean())))
    said = (
        f"clean: patch {signed(patch)}, regular {signed(regular)}, patch − regular {signed(patch - regular)}"
    )
    return Verdict(agree(-regular) and agree(patch - regular) and more, said)


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": ARMS}


STUDY = Study(
    name="ns-byol",
    summary="BYOL repelled from patch negatives or from other images",
    reference="Table 7 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "similarity", "ood", "corrupted"),
    claims=(
        Claim("19", "a regular negative hurts BYOL far more than a patch negative of the same weight", "B",
              regular_hurts),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free"), groups),),
)  # fmt: skip
