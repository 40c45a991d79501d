"""The size of the patches: which prior serves clean images, which images without texture (claim 21)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.cues.patches import parse_range
from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

AUGMENT = ["hflip", "vflip", "rot90"]


def name_of(span: str) -> str:
    return f"d = {span.replace(':', '–')}"


def grid(lab: Lab) -> list[str]:
    return [name_of(r) for r in lab.patch_ranges]


def turned(lab: Lab) -> str:
    return f"{grid(lab)[-1]}, flips and turns"


def arms(lab: Lab) -> list[Arm]:
    """Each interval once, and the largest patches with flips and quarter turns."""
    out = [Arm("no negatives")]
    for span, name in zip(lab.patch_ranges, grid(lab)):
        low, high = parse_range(span)
        out.append(Arm(name, {**lab.negative(lab.alpha), "patch_size": span}, x=(low + high) / 2))
    largest = {**lab.negative(lab.alpha), "patch_size": lab.patch_ranges[-1], "patch_augment": AUGMENT}
    return [*out, Arm(turned(lab), largest)]


def larger_for_shape(lab: Lab) -> list[PairedDifference]:
    """From the smallest to the largest patches: texture-free accuracy gains, and more than clean accuracy does."""
    first, last = grid(lab)[0], grid(lab)[-1]
    weights = {
        (a, q): v * w
        for a, v in ((last, 1.0), (first, -1.0))
        for q, w in (("texture_free", 1), ("clean", -1))
    }
    return [
        above(last, first, "texture_free"),
        combined(f"gain of texture_free − gain of clean, {last} − {first}", weights),
    ]


def turns_do_not_help(lab: Lab) -> list[PairedDifference]:
    """Held only if they lower both accuracies: an interval that includes zero shows no help, but no absence of it."""
    return [below(turned(lab), grid(lab)[-1], q) for q in ("clean", "texture_free")]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": grid(lab)}


STUDY = Study(
    name="ns-patch-grid",
    summary="The interval that the side of the patches is drawn from",
    reference="Figure 11 of Ge et al. 2021",
    arms=arms,
    sweep="patch_ranges",
    measures=("clean", "conflict", "cues", "similarity", "ood", "corrupted"),
    claims=(
        Claim("21a", "larger patches help texture-free accuracy more than clean", "C", larger_for_shape),
        Claim("21b", "flips and turns of the patches do not help with large patches", "C", turns_do_not_help),
    ),
    figures=(
        Figure("accuracy", "Accuracy", "mean side of the patches in pixels", "accuracy",
               ("clean", "texture_free"), groups),
    ),
)  # fmt: skip
