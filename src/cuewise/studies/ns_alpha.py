"""The α sweep: what the weight of patch negatives does to similarities, shape bias and accuracies (claims 10–16, 20, 22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuewise.studies.claims import Claim, PairedDifference, above, below, combined, crossed, steps
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study, SweepOfLab
from cuewise.studies.table import Row

CLEARLY = 0.1  # in cosine similarity
MOST, FAR_ABOVE = 0.5, 0.5  # share of the classes; accuracy on a class


def needs_none(lab: Lab, alphas: Sequence[float]) -> str:
    """Weights from 0 up."""
    return "start with 0, the arm without negatives, and no weight below it" if alphas[0] != 0 else ""


ALPHAS = SweepOfLab("alphas", float, wrong=needs_none)


def name_of(alpha: float, mode: str = "in") -> str:
    return f"α = {alpha:g}" + ("" if mode == "in" else f" {mode}")


def sweep(lab: Lab) -> list[str]:
    """The arms of the curve, from α = 0 on."""
    return [name_of(a) for a in lab.alphas]


def arms(lab: Lab) -> list[Arm]:
    """α = 0 is the method without the negative; then its other forms."""
    inside = [Arm(name_of(a), lab.negative(a) if a else {}, x=a) for a in lab.alphas]
    own: dict[str, dict[str, Any]] = {
        "out": {"alpha_mode": "out"},
        "centred": {lab.main: {"center": 1.0}},
        "separate": {lab.main: {"statistics": "separate"}},
        "gradient": {lab.main: {"negatives_gradient": True}},
    }
    other = [(a, form) for form, alphas in forms(lab).items() for a in alphas]
    return inside + [Arm(name_of(a, form), lab.negative(a, **own[form]), x=a) for a, form in other]


def forms(lab: Lab) -> dict[str, tuple[float, ...]]:
    """Other forms of the negative, and the α they are trained with."""
    with_gradient = lab.gradient_alphas if lab.main == "moco" else ()  # SimCLR's have it anyway
    return {
        "out": lab.out_alphas,
        "centred": lab.centred_alphas,
        "separate": lab.separate_alphas,
        "gradient": with_gradient,
    }


def hard_before_training(lab: Lab) -> list[PairedDifference]:
    """Claim 10, read off the arm without negatives."""
    arm, out = name_of(0), []
    for kind in ("similarity/patch", "similarity/texture"):
        above_random = {(arm, kind): 1.0, (arm, "similarity/random"): -1.0}
        below_positive = {(arm, "similarity/positive"): 1.0, (arm, kind): -1.0}
        out += [
            combined(f"{kind} − random", above_random, margin=CLEARLY, because="clearly"),
            combined(f"positive − {kind}", below_positive),
        ]
    return out


def falls_monotonically(lab: Lab) -> list[PairedDifference]:
    """Claim 11: every step of α."""
    return steps(sweep(lab), "similarity/patch", -1)


def over_the_sweep(*signs: tuple[str, int]) -> Callable[[Lab], list[PairedDifference]]:
    """The largest α against none; (quantity, which way it goes)…"""
    return lambda lab: [above(sweep(lab)[-1], name_of(0), q, sign) for q, sign in signs]


def towards_shape(lab: Lab) -> list[PairedDifference]:
    """Claim 14: shape bias from end to end, texture decisions at every step."""
    return [above(sweep(lab)[-1], name_of(0), "shape_bias"), *steps(sweep(lab), "texture_accuracy", -1)]


def trade_off(lab: Lab) -> list[PairedDifference]:
    """Claim 15: where each curve peaks, and both at the largest α against the baseline."""
    names, alphas = sweep(lab), np.array(lab.alphas, np.float64)
    cells = tuple((n, q) for q in ("texture_free", "clean") for n in names)

    def later(*rows: Row) -> Row:
        free, clean = np.split(np.stack(rows), 2)  # α×seeds each
        return np.asarray(alphas[free.argmax(0)] - alphas[clean.argmax(0)])

    return [
        PairedDifference("α at the peak: texture_free − clean", cells, later),
        below(names[-1], names[0], "clean"),
        above(names[-1], names[0], "texture_free"),
    ]


def fine_suffers(lab: Lab) -> list[PairedDifference]:
    """Claim 16: the largest α against none."""
    first, last = name_of(0), sweep(lab)[-1]
    return [
        below(last, first, "fine"),
        crossed(f"coarse − fine, {last} − {first}", last, first, "coarse", "fine"),
    ]


def inside_lowers_more(lab: Lab) -> list[PairedDifference]:
    """Claim 20, at every α that was trained both ways."""
    return [above(name_of(a, "out"), name_of(a), "similarity/patch") for a in lab.out_alphas]


def centred_helps(lab: Lab) -> list[PairedDifference]:
    """Centred negatives against none, and against the published form at the same α."""
    bases = [(a, base) for a in lab.centred_alphas for base in (name_of(0), name_of(a))]
    return [above(name_of(a, "centred"), base, "shape_bias") for a, base in bases]


def sharing_helps(lab: Lab) -> list[PairedDifference]:
    """How far patch negatives stay above random pairs in evaluation mode: shared batch statistics against separate."""
    pairs = [(name_of(a, "separate"), name_of(a)) for a in lab.separate_alphas]
    return [
        crossed(f"patch − random similarity, {a} − {b}", a, b, "similarity/patch", "similarity/random")
        for a, b in pairs
    ]


def with_gradient(*signs: tuple[str, int]) -> Callable[[Lab], list[PairedDifference]]:
    """MoCo's negatives with gradient against the published form at the same α; (quantity, which way it goes)…"""
    return lambda lab: [
        above(name_of(a, "gradient"), name_of(a), q, sign) for a in lab.gradient_alphas for q, sign in signs
    ]


def long_tail(lab: Lab) -> list[PairedDifference]:
    """Claim 22, on the arm without negatives."""
    arm = name_of(0)
    return [
        combined("share of classes near chance", {(arm, "texture_classes/near_chance"): 1},
                 margin=MOST, because="most"),
        combined("accuracy on the highest class", {(arm, "texture_classes/highest"): 1},
                 margin=FAR_ABOVE, because="far above"),
    ]  # fmt: skip


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": sweep(lab)}


def all_forms(lab: Lab) -> dict[str, Sequence[str]]:
    return {
        "in": sweep(lab),
        **{form: [name_of(a, form) for a in alphas] for form, alphas in forms(lab).items()},
    }


STUDY = Study(
    name="ns-alpha",
    summary="The weight α of patch negatives against shape bias, accuracies and similarities",
    reference="Figure 6 of Ge et al. 2021",
    arms=arms,
    sweep=ALPHAS,
    measures=("clean", "conflict", "cues", "fine", "texture_classes", "similarity", "ood", "corrupted"),
    claims=(
        Claim("10", "before any such training, patch and texture negatives are harder than other images: clearly more similar "
              "than random pairs, less than positives", "A",
              hard_before_training),
        Claim("11", "similarity to patch negatives falls monotonically with α", "A", falls_monotonically),
        Claim("12", "similarity to texture negatives falls too, though only patches were trained on", "B",
              over_the_sweep(("similarity/texture", -1))),
        Claim("13", "similarity of positives falls and spreads as α grows", "B",
              over_the_sweep(("similarity/positive", -1), ("similarity/positive_std", 1))),
        Claim("14", "shape bias rises with α, texture decisions fall monotonically", "B", towards_shape),
        Claim("14c", "shape decisions rise in absolute terms", "C", over_the_sweep(("shape_accuracy", 1))),
        Claim("15", "texture-free accuracy peaks at a larger α than clean; at the largest α clean is below the "
              "baseline and texture-free above", "B", trade_off),
        Claim("16", "fine-grained accuracy drops more than coarse", "B", fine_suffers),
        Claim("20", "the weight inside the exponential lowers similarity more than outside", "C", inside_lowers_more),
        Claim("own", "centred negatives raise shape bias, and more than the published form", "C", centred_helps),
        Claim("own2", "batch statistics shared with the views push patch negatives further down in evaluation mode "
              "than statistics of their own", "C", sharing_helps),
        Claim("own3", "with gradient through its negatives MoCo's space stays open: random pairs and patches are further "
              "away than without, at the same α", "C", with_gradient(("similarity/random", -1), ("similarity/patch", -1))),
        Claim("own4", "and clean accuracy is higher", "C", with_gradient(("clean", 1))),
        Claim("22", "on pure texture most classes are near chance and a few far above", "B", long_tail),
    ),
    figures=(
        Figure("bias", "Decisions where shape and texture disagree", "α", "share",
               ("shape_bias", "shape_accuracy", "texture_accuracy"), groups),
        Figure("accuracy", "Accuracy", "α", "accuracy",
               ("clean", "texture_free", "fine", "coarse", "cue/texture_only", "cue/silhouette", "cue/sketch"), groups),
        Figure("similarity", "Similarity to the query (evaluation mode)", "α", "cosine similarity",
               ("similarity/positive", "similarity/random", "similarity/patch", "similarity/texture"), groups),
        Figure("forms", "Forms of the negative: α outside the exponential, centred, statistics of their own, with gradient", "α",
               "share, similarity", ("shape_bias", "similarity/patch"), all_forms),
    ),
)  # fmt: skip
