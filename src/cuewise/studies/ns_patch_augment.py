"""Flips and quarter turns of single patches, one after another, with small and with large patches (claim 21b)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.studies.claims import Claim, PairedDifference, below
from cuewise.studies.labs import Lab
from cuewise.studies.ns_patch_grid import ends, name_of
from cuewise.studies.study import Arm, Figure, Study

LEVELS: dict[str, list[str]] = {
    "as they are": [],
    "+ left–right": ["hflip"],
    "+ up–down": ["hflip", "vflip"],
    "+ turns": ["hflip", "vflip", "rot90"],
}


def called(span: str, level: str) -> str:
    return f"{name_of(span)}, {level}"


def arms(lab: Lab) -> list[Arm]:
    """Each level adds to the one before it."""
    return [
        Arm(called(span, level), {**lab.negative(lab.alpha), "patch_size": span, "patch_augment": words}, x=x)
        for span in ends(lab)
        for x, (level, words) in enumerate(LEVELS.items())
    ]


def turns_do_not_help(lab: Lab) -> list[PairedDifference]:
    """Held only if they lower both accuracies: an interval that includes zero shows no help, but no absence of it."""
    none, every = (called(ends(lab)[1], level) for level in ("as they are", "+ turns"))
    return [below(every, none, q) for q in ("clean", "texture_free")]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {name_of(span): [called(span, level) for level in LEVELS] for span in ends(lab)}


STUDY = Study(
    name="ns-patch-augment",
    summary="Flips and turns of single patches, each added to the one before",
    reference="Table 6 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(Claim("21b", "flips and turns of the patches do not help with large patches", "C", turns_do_not_help),),
    figures=(
        Figure("accuracy", "Accuracy", "augmentations of a patch: none, left–right, up–down, turns", "accuracy",
               ("clean", "texture_free"), groups),
    ),
)  # fmt: skip
