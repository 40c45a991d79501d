"""A trained model, tuned away from texture: what each part of the loss does to shape bias, accuracy and other domains."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.studies.claims import Claim, PairedDifference, above, combined
from cuewise.studies.labs import CHANGED, Lab
from cuewise.studies.ns_alpha import needs_none
from cuewise.studies.study import Arm, Figure, Study, SweepOfLab

NONE, CONTRAST = "as it was", "α = 0"
WORTH = 3.0  # how much a lost share of accuracy counts against a gained share of shape decisions


def name_of(alpha: float) -> str:
    return f"α = {alpha:g}"


def arms(lab: Lab) -> list[Arm]:
    """In the order of importance, so that a study that is stopped has the main ones."""
    patch = {a: {**CHANGED, **lab.negative(a)} for a in lab.alphas if a}
    useful = lab.alpha
    whole = {"suppress": {"name": "anisotropic", "share": 1.0}, "views": {"blur_p": 0.0}}
    return [
        Arm(NONE, {"tune": {"images": 32}, "optim": {"lr": 1e-9}}),  # one step of no length
        Arm(CONTRAST, CHANGED, x=0),
        Arm(name_of(useful), patch[useful], x=useful),
        *(Arm(name_of(a), patch[a], x=a) for a in patch if a != useful),
        Arm("without keep", {**patch[useful], "tune": {"keep": 0.0}}),
        Arm("without contrast", {**CHANGED, "tune": {"contrast": 0.0}}),
        Arm("suppression", whole),
        Arm("styles", {"views": {"style_p": 1.0}}),
        Arm("negatives alone", lab.negative(useful)),
        Arm("moco", {}, "moco"),
    ]


def needs_alpha(lab: Lab, alphas: Sequence[float]) -> str:
    """From 0 up, and the weight that the other arms have."""
    missing = f"tune compares at α = {lab.alpha:g}, which must be among them"
    return needs_none(lab, alphas) or ("" if lab.alpha in alphas else missing)


def sweep(lab: Lab) -> list[str]:
    return [name_of(a) for a in lab.alphas]


def shape_rises(lab: Lab) -> list[PairedDifference]:
    """On the half of the stimuli that nothing was chosen on."""
    return [above(arm, NONE, "shape_bias/confirmed") for arm in (CONTRAST, name_of(lab.alpha))]


def gain_is_worth_it(lab: Lab) -> list[PairedDifference]:
    """Shape bias gained plus three times the change of accuracy, on stimuli and classes that nothing was chosen on."""
    out = []
    for arm in (CONTRAST, name_of(lab.alpha)):
        weights = {(a, q): s * w for a, s in ((arm, 1.0), (NONE, -1.0)) for q, w in
                   (("shape_bias/confirmed", 1.0), ("own/accuracy/confirmed", WORTH))}  # fmt: skip
        out.append(combined(f"shape bias + {WORTH:g} · accuracy, {arm} − {NONE}", weights))
    return out


def domains_gain(lab: Lab) -> list[PairedDifference]:
    return [above(arm, NONE, "ood") for arm in (CONTRAST, name_of(lab.alpha))]


def negative_adds(lab: Lab) -> list[PairedDifference]:
    return [above(name_of(lab.alpha), CONTRAST, "shape_bias/confirmed")]


def alpha_is_a_dial(lab: Lab) -> list[PairedDifference]:
    return [above(sweep(lab)[-1], CONTRAST, "shape_bias")]


def keep_keeps(lab: Lab) -> list[PairedDifference]:
    return [above(name_of(lab.alpha), "without keep", "own/accuracy")]


def plain_pretraining_loses(lab: Lab) -> list[PairedDifference]:
    """MoCo from the same start on the same images."""
    return [above(name_of(lab.alpha), "moco", "own/accuracy"), above(name_of(lab.alpha), "moco", "ood")]


def corruptions_gain(lab: Lab) -> list[PairedDifference]:
    return [above(name_of(lab.alpha), NONE, "own/corrupted")]


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": sweep(lab)}


STUDY = Study(
    name="tune",
    summary="A trained model tuned away from texture: shape bias against what it knew, as α and --keep turn",
    reference="this package",
    arms=arms,
    sweep=SweepOfLab("alphas", float, wrong=needs_alpha),
    measures=("own", "own_corrupted", "domains"),
    claims=(
        Claim("T1", "changed views and contrast against the teacher raise shape bias", "A", shape_rises),
        Claim("T2", "shape bias gains more than three times what accuracy loses", "A", gain_is_worth_it),
        Claim("T3", "a probe on photographs gains in other domains", "B", domains_gain),
        Claim("T4", "a patch negative raises shape bias further", "B", negative_adds),
        Claim("T5", "shape bias rises with α", "B", alpha_is_a_dial),
        Claim("T6", "without --keep accuracy is lower", "C", keep_keeps),
        Claim("T7", "plain MoCo from the same start loses accuracy and other domains", "B", plain_pretraining_loses),
        Claim("T8", "the classifier is right more often on corrupted photographs", "C", corruptions_gain),
    ),
    figures=(
        Figure("dial", "As α turns", "α", "share", ("shape_bias", "own/accuracy", "own/corrupted", "ood", "own/sketch"), groups),
        Figure("arms", "What each part does", "", "share", ("shape_bias", "own/accuracy", "ood")),
    ),
    tunes=True,
)  # fmt: skip
