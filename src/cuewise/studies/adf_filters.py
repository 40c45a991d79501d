"""Which filter, and how much of it: supervised training on images and their filtered copies (claim 25)."""

from __future__ import annotations

from cuewise.studies.adf_supervised import BOTH, ORIGINAL, drawn, filtered, original
from cuewise.studies.claims import Claim, PairedDifference, above, below
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

MORE, CARTOON = "anisotropic, 50 steps", "cartoon"
FILTERS = ("bilateral", CARTOON, "gaussian")  # with their own settings
LITTLE = 0.01


def arms(lab: Lab) -> list[Arm]:
    """Original images, then half of them filtered, each filter with its own settings; the same steps in all arms."""
    kappa = {k: v for k, v in lab.diffusion.items() if k == "kappa"}
    settings = {
        ORIGINAL: original(lab),
        BOTH: filtered(lab, 0.5, **lab.diffusion),
        MORE: filtered(lab, 0.5, **{**lab.diffusion, "steps": lab.more_steps}),
        "robust": filtered(lab, 0.5, "robust", steps=lab.diffusion["steps"], **kappa),
        **{name: filtered(lab, 0.5, name) for name in FILTERS},
    }
    return [Arm(name, own, method="supervised") for name, own in settings.items()]


def more_is_not_better(lab: Lab) -> list[PairedDifference]:
    """Held only if both accuracies fall: an interval that includes zero shows no help, but no absence of it."""
    return [below(MORE, BOTH, q) for q in ("after/clean", f"before/{drawn(lab)}")]


def edges_matter(lab: Lab) -> list[PairedDifference]:
    return [above(BOTH, "gaussian", f"before/{drawn(lab)}")]


def cartoons_help(lab: Lab) -> list[PairedDifference]:
    return [
        above(CARTOON, ORIGINAL, "before/texture_free"),
        above(CARTOON, ORIGINAL, "before/clean", margin=-LITTLE, because="no more than a point lower"),
    ]


STUDY = Study(
    name="adf-filters",
    summary="Filters against texture and their strength, in supervised training",
    reference="Table 2.4 of Mishra's thesis",
    arms=arms,
    measures=("answers",),
    claims=(
        Claim("25a", "50 steps of diffusion are not better than 20", "C", more_is_not_better),
        Claim("25b", "a Gaussian is worse than diffusion where edges matter", "C", edges_matter),
        Claim("own", "half of the images as cartoons: better without texture than on original images alone, and clean accuracy "
              "is no more than a point lower", "C", cartoons_help),
    ),
    figures=(
        Figure("before", "Accuracy before fine-tuning on clean images", "arm", "accuracy",
               ("before/clean", "before/texture_free")),
        Figure("after", "Accuracy after fine-tuning on clean images", "arm", "accuracy",
               ("after/clean", "after/texture_free")),
    ),
)  # fmt: skip
