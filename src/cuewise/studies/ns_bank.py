"""The length K of MoCo's queue, with and without patch negatives (claim 18)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuewise.studies.claims import Claim, PairedDifference, above, combined
from cuewise.studies.labs import Lab
from cuewise.studies.statistics import slope_weights
from cuewise.studies.study import Arm, Figure, Study, SweepOfLab


def holds_nothing(lab: Lab, banks: Sequence[int]) -> str:
    """A length below 1."""
    return "a queue holds 1 key or more" if banks[0] < 1 else ""


BANKS = SweepOfLab("banks", int, wrong=holds_nothing)


def names(lab: Lab, with_patches: bool) -> list[str]:
    return [f"K = {k}" + (", patch" if with_patches else "") for k in lab.banks]


def arms(lab: Lab) -> list[Arm]:
    """Everything fixed but K; the queue does not change the order of the data."""
    out = []
    for with_patches in (False, True):
        for k, name in zip(lab.banks, names(lab, with_patches)):
            own = lab.negative(lab.useful["moco"]) if with_patches else {}
            out.append(Arm(name, {**own, "moco": {"queue": k}}, method="moco", x=k))
    return out


def gain_persists(lab: Lab) -> list[PairedDifference]:
    """Claim 18, first half: clean accuracy, as in the paper's figures."""
    return [above(a, b, "clean") for a, b in zip(names(lab, True), names(lab, False))]


def less_to_lose(lab: Lab) -> list[PairedDifference]:
    """Claim 18, second half: the slope of clean accuracy over log₂ K."""
    w = slope_weights([math.log2(k) for k in lab.banks])
    weights = {(n, "clean"): v for n, v in zip(names(lab, False), w)}
    weights |= {(n, "clean"): -v for n, v in zip(names(lab, True), w)}
    return [combined("clean for each doubling of K: without − with patch negatives", weights)]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"MoCo": names(lab, False), "patch negatives": names(lab, True)}


STUDY = Study(
    name="ns-bank",
    summary="Accuracy against the length of the queue, with and without patch negatives",
    reference="Figures 4 and 5 of Ge et al. 2021",
    arms=arms,
    sweep=BANKS,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(
        Claim("18a", "the gain from patch negatives persists at every K", "C", gain_persists),
        Claim("18b", "with patch negatives less accuracy is lost when K shrinks", "C", less_to_lose),
    ),
    figures=(
        Figure("clean", "Clean accuracy", "K", "accuracy", ("clean",), groups),
        Figure("texture-free", "Texture-free accuracy", "K", "accuracy", ("texture_free",), groups),
    ),
)
