"""The α sweep: what the weight of patch negatives does to similarities, shape bias and accuracies (claims 10–16, 20, 22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed


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


def hard_before_training(t: Table, lab: Lab) -> Verdict:
    """Claim 10, read off the arm without negatives."""
    base, quantities = name_of(0), ["similarity/patch", "similarity/texture"]
    if not t.has([base], "similarity/random", "similarity/positive", *quantities):
        return NOT_MEASURED
    random, positive = t.row(base, "similarity/random"), t.row(base, "similarity/positive")
    held, said = True, [f"random {random.mean():.3f}, positive {positive.mean():.3f}"]
    for q in quantities:
        x = t.row(base, q)
        held = held and agree(x - random) and agree(positive - x)
        said.append(f"{q.partition('/')[2]} {x.mean():.3f} (above random by {signed(x - random)})")
    return Verdict(bool(held), "; ".join(said))


def falls(quantity: str) -> Callable[[Table, Lab], Verdict]:
    def judge(t: Table, lab: Lab) -> Verdict:
        if not t.has(sweep(lab), quantity):
            return NOT_MEASURED
        trend = t.trend(sweep(lab), quantity)
        return Verdict(trend.falls and not trend.rises, str(trend))

    return judge


def looser(t: Table, lab: Lab) -> Verdict:
    """Claim 13: positives drift apart, and not all alike."""
    if not t.has(sweep(lab), "similarity/positive", "similarity/positive_std"):
        return NOT_MEASURED
    mean, spread = (t.trend(sweep(lab), f"similarity/{q}") for q in ("positive", "positive_std"))
    return Verdict(mean.falls and spread.rises, f"{mean}; {spread}")


def towards_shape(t: Table, lab: Lab) -> Verdict:
    """Claim 14."""
    if not t.has(sweep(lab), "shape_bias", "texture_accuracy"):
        return NOT_MEASURED
    bias, texture = t.trend(sweep(lab), "shape_bias"), t.trend(sweep(lab), "texture_accuracy")
    return Verdict(bias.rises and texture.falls, f"{bias}; {texture}")


def better_at_shape(t: Table, lab: Lab) -> Verdict:
    """Claim 14, the weaker half."""
    if not t.has(sweep(lab), "shape_accuracy"):
        return NOT_MEASURED
    trend = t.trend(sweep(lab), "shape_accuracy")
    return Verdict(trend.rises and not trend.falls, str(trend))


def trade_off(t: Table, lab: Lab) -> Verdict:
    """Claim 15: where each curve peaks, and both at the largest α against the baseline."""
    names = sweep(lab)
    if not t.has(names, "clean", "texture_free"):
        return NOT_MEASURED
    peaks = {q: t.peak(names, q) for q in ("clean", "texture_free")}
    later = names.index(peaks["texture_free"]) > names.index(peaks["clean"])
    clean, free = (t.difference(names[-1], names[0], q) for q in ("clean", "texture_free"))
    crossing = agree(-clean) and agree(free)
    said = (
        f"clean peaks at {peaks['clean']}, texture-free at {peaks['texture_free']}; at {names[-1]} clean {signed(clean)}, "
        f"texture-free {signed(free)}"
    )
    return Verdict(later and crossing, said)


def fine_suffers(t: Table, lab: Lab) -> Verdict:
    """Claim 16: the largest α against none."""
    names = sweep(lab)
    if not t.has(names, "fine", "coarse"):
        return NOT_MEASURED
    fine, coarse = (t.difference(names[-1], names[0], q) for q in ("fine", "coarse"))
    said = f"fine {signed(fine)}, coarse {signed(coarse)}, coarse − fine {signed(coarse - fine)}"
    return Verdict(agree(-fine) and agree(coarse - fine), said)


def inside_lowers_more(t: Table, lab: Lab) -> Verdict:
    """Claim 20, at every α that was trained both ways."""
    both = [(name_of(a), name_of(a, "out")) for a in lab.out_alphas]
    if not both or not t.has([n for pair in both for n in pair], "similarity/patch"):
        return NOT_MEASURED
    found = [t.difference(outside, inside, "similarity/patch") for inside, outside in both]
    said = [f"{outside} − in: {signed(d)}" for (_, outside), d in zip(both, found)]
    return Verdict(all(agree(d) for d in found), f"similarity/patch {'; '.join(said)}")


def centred_helps(t: Table, lab: Lab) -> Verdict:
    """Centred negatives against none, and against the published form at the same α."""
    names = [name_of(a, form) for a in lab.centred_alphas for form in ("in", "centred")]
    if not names or not t.has([name_of(0), *names], "shape_bias"):
        return NOT_MEASURED
    held, said = True, []
    for alpha in lab.centred_alphas:
        centred = name_of(alpha, "centred")
        gain, more = (t.difference(centred, n, "shape_bias") for n in (name_of(0), name_of(alpha)))
        held = held and agree(gain) and agree(more)
        said.append(f"α = {alpha:g}: over no negative {signed(gain)}, over the published form {signed(more)}")
    return Verdict(held, f"shape_bias {'; '.join(said)}")


def sharing_helps(t: Table, lab: Lab) -> Verdict:
    """How far patch negatives stay above random pairs in evaluation mode: shared batch statistics against separate."""
    both = [(name_of(a), name_of(a, "separate")) for a in lab.separate_alphas]
    quantities = ("similarity/patch", "similarity/random")
    if not both or not t.has([n for pair in both for n in pair], *quantities):
        return NOT_MEASURED
    held, said = True, []
    for shared, separate in both:
        gap = {n: t.row(n, quantities[0]) - t.row(n, quantities[1]) for n in (shared, separate)}
        held = held and agree(gap[separate] - gap[shared])
        said.append(f"{shared}: {gap[shared].mean():.3f}, separate {gap[separate].mean():.3f}, difference "
                    f"{signed(gap[separate] - gap[shared])}")  # fmt: skip
    return Verdict(held, f"patch − random similarity, {'; '.join(said)}")


def with_gradient(*signs: tuple[str, int]) -> Callable[[Table, Lab], Verdict]:
    """MoCo's negatives with gradient against the published form at the same α; (quantity, which way it goes)…"""

    def judge(t: Table, lab: Lab) -> Verdict:
        both = [(name_of(a), name_of(a, "gradient")) for a in lab.gradient_alphas]
        if not both or not t.has([n for pair in both for n in pair], *(q for q, _ in signs)):
            return NOT_MEASURED
        held, said = True, []
        for fixed, learned in both:
            found = {q: t.difference(learned, fixed, q) for q, _ in signs}
            held = held and all(agree(sign * found[q]) for q, sign in signs)
            said.append(f"{learned} − {fixed}: " + ", ".join(f"{q} {signed(d)}" for q, d in found.items()))
        return Verdict(held, "; ".join(said))

    return judge


def long_tail(t: Table, lab: Lab) -> Verdict:
    """Claim 22, on the arm without negatives."""
    names = [name_of(0)]
    quantities = ("texture_classes/median", "texture_classes/highest", "texture_classes/near_chance")
    if not t.has(names, *quantities):
        return NOT_MEASURED
    median, highest, near = (t.mean(names[0], q) for q in quantities)
    said = f"{near:.0%} of the classes below twice chance, median class {median:.3f}, highest {highest:.3f}"
    return Verdict(near >= 0.5 and highest >= 0.5, said)


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
    measures=("clean", "conflict", "cues", "fine", "texture_classes", "similarity", "ood", "corrupted"),
    claims=(
        Claim("10", "before any such training, patch and texture negatives are harder than other images", "A",
              hard_before_training),
        Claim("11", "similarity to patch negatives falls with α", "A", falls("similarity/patch")),
        Claim("12", "similarity to texture negatives falls too, though only patches were trained on", "B",
              falls("similarity/texture")),
        Claim("13", "similarity of positives falls and spreads as α grows", "B", looser),
        Claim("14", "shape bias rises with α, texture decisions fall", "B", towards_shape),
        Claim("14c", "shape decisions rise in absolute terms", "C", better_at_shape),
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
