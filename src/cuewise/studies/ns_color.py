"""Without colour jitter the colours of an image give it away; do patch negatives close that shortcut? (claim 17)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuewise.config import merge
from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed

ARMS = ("jitter", "jitter, patch", "no jitter", "no jitter, patch")


def arms(lab: Lab) -> list[Arm]:
    """Two by two, on views in colour."""
    patch = lab.negative(lab.alpha)
    no = {"color_jitter": False}
    settings: tuple[dict[str, Any], ...] = ({}, patch, no, merge(no, patch))
    return [Arm(name, merge(lab.colour, s)) for name, s in zip(ARMS, settings)]


def interaction(t: Table, lab: Lab) -> Verdict:
    """Gain without jitter minus gain with it."""
    found = [q for q in ("clean", "texture_free") if t.has(ARMS, q)]
    if not found:
        return NOT_MEASURED
    held, said = [], []
    for q in found:
        with_jitter = t.difference("jitter, patch", "jitter", q)
        without = t.difference("no jitter, patch", "no jitter", q)
        held.append(agree(without - with_jitter) and agree(without))
        said.append(
            f"{q} gain {signed(without)} without jitter, {signed(with_jitter)} with; difference {signed(without - with_jitter)}"
        )
    return Verdict(held[0], "; ".join(said))


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": ARMS}


STUDY = Study(
    name="ns-color",
    summary="Patch negatives with and without colour jitter",
    reference="Table 3 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(
        Claim(
            "17",
            "without colour jitter the gain from patch negatives is larger than with it",
            "B",
            interaction,
        ),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free"), groups),),
)
