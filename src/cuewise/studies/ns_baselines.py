"""Patch negatives beside texture negatives and four ways to make ordinary negatives harder (claim 12, second half; table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed

HARD = ("mochi", "ifm", "debiased", "hard")


def arms(lab: Lab) -> list[Arm]:
    """All on the lab's main method."""
    own = [
        Arm("no negatives"),
        Arm("patch", lab.negative(lab.alpha)),
        Arm("texture", lab.negative(lab.alpha, "texture")),
    ]
    return own + [Arm(name, {"hard": {"name": name}}) for name in HARD]


def texture_lowers_less(t: Table, lab: Lab) -> Verdict:
    """Claim 12, second half, against the arm without negatives."""
    if not t.has(["no negatives", "patch", "texture"], "similarity/patch"):
        return NOT_MEASURED
    patch, texture = (t.difference(n, "no negatives", "similarity/patch") for n in ("patch", "texture"))
    said = f"similarity/patch: trained on patches {signed(patch)}, on textures {signed(texture)}"
    return Verdict(agree(texture - patch) and agree(-patch), said)


def beyond_hard(t: Table, lab: Lab) -> Verdict:
    """Table 1: texture-free accuracy against the best of the four."""
    others = [n for n in HARD if t.has([n], "texture_free")]
    if not others or not t.has(["patch"], "texture_free"):
        return NOT_MEASURED
    best = t.peak(others, "texture_free")
    d = t.difference("patch", best, "texture_free")
    return Verdict(agree(d), f"texture-free: patch − {best} (the best of {len(others)}) {signed(d)}")


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": ["no negatives", "patch", "texture", *HARD]}


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
        Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "texture_free"), groups),
        Figure("similarity", "Similarity to the query", "arm", "cosine similarity",
               ("similarity/patch", "similarity/texture"), groups),
    ),
)  # fmt: skip
