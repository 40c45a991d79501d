"""The size of the patches: which prior serves clean images, which images without texture (claim 21)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.cues.patches import parse_range
from cuewise.studies.claims import Claim, PairedDifference, above, crossed
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study, SweepOfLab


def interval(text: str) -> str:
    """ "5:12" as it stands."""
    parse_range(text)
    return text


def name_of(span: str) -> str:
    return f"d = {span.replace(':', '–')}"


def grid(lab: Lab) -> list[str]:
    return [name_of(r) for r in lab.patch_ranges]


def ends(lab: Lab) -> tuple[str, str]:
    """The intervals with the smallest and with the largest patches."""
    by_side = sorted(lab.patch_ranges, key=lambda r: sum(parse_range(r)))
    return by_side[0], by_side[-1]


def arms(lab: Lab) -> list[Arm]:
    """Each interval once, at its place in the plane of both bounds."""
    out = [Arm("no negatives")]
    for span, name in zip(lab.patch_ranges, grid(lab)):
        low, high = parse_range(span)
        out.append(Arm(name, {**lab.negative(lab.alpha), "patch_size": span}, x=low, y=high))
    return out


def larger_for_shape(lab: Lab) -> list[PairedDifference]:
    """From the smallest to the largest patches: texture-free accuracy gains, and more than clean accuracy does."""
    first, last = map(name_of, ends(lab))
    gain = f"gain of texture_free − gain of clean, {last} − {first}"
    return [above(last, first, "texture_free"), crossed(gain, last, first, "texture_free", "clean")]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": grid(lab)}


STUDY = Study(
    name="ns-patch-grid",
    summary="The interval that the side of the patches is drawn from, by both of its bounds",
    reference="Figure 11 of Ge et al. 2021",
    arms=arms,
    sweep=SweepOfLab("patch_ranges", interval),
    measures=("clean", "conflict", "cues", "similarity", "ood", "corrupted"),
    claims=(
        Claim("21a", "larger patches help texture-free accuracy more than clean", "C", larger_for_shape),
    ),
    figures=(
        Figure("clean", "Accuracy", "smallest side in pixels", "largest side", ("clean",), groups, over="plane"),
        Figure("texture_free", "Accuracy without texture", "smallest side in pixels", "largest side", ("texture_free",),
               groups, over="plane"),
    ),
)  # fmt: skip
