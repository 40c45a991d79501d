"""Which cues a trained arm relies on: accuracies, decisions and similarities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cuewise.audits.answers import answers_of
from cuewise.audits.change import change
from cuewise.audits.coarse_fine import breed_kinds, coarse_fine_scores, judged
from cuewise.audits.measures import (
    class_accuracies,
    conflict_scores,
    judged_classes,
    near_chance_bound,
    right_on_copies,
)
from cuewise.audits.pairs import PAIRS, PairSettings, recipe_of, similarities
from cuewise.cues.patches import parse_range
from cuewise.studies.labs import Lab
from cuewise.studies.measures.arm import TrainedArm, mean_of, quantities
from cuewise.studies.measures.measure import Quantities, measure

CORRUPTIONS = ("gaussian_noise", "motion_blur", "fog", "jpeg_compression")  # one of each family
SEVERITY, CORRUPTED = 3, 400  # images
PAIRED = 512  # images whose pairs are compared


@measure("clean", "linear accuracy on images like those that were trained on", "probe", "clean?", version=3)
def clean(arm: TrainedArm) -> Quantities:
    if "clean" in arm.lab.sets:
        return arm.accuracy("probe", "clean")
    return arm.held_out_accuracy("probe", "clean")


@measure("conflict", "decisions where shape and texture disagree", "probe", "conflict", version=2)
def conflict(arm: TrainedArm) -> Quantities:
    """Images whose two cues are of the same class are dropped."""
    scores, _, _ = conflict_scores(arm.model, arm.answerer(), arm.data("conflict"))
    out: Quantities = {}
    for score in scores[:3]:  # shape bias and both accuracies
        out |= quantities(score.name, score)
    return out


@measure("cues", "accuracy from one cue alone", "probe", "texture_only", "silhouette", "sketch", version=2)
def cues(arm: TrainedArm) -> Quantities:
    """texture_free is the mean of silhouette and sketch."""
    out: Quantities = {}
    for role in ("texture_only", "silhouette", "sketch"):
        out |= arm.accuracy("probe", role, f"cue/{role}")
    return out | mean_of("texture_free", out, ["cue/silhouette", "cue/sketch"])


@measure("fine", "a probe on breeds: the breed is right (fine), its kind is (coarse)", "fine_train", "fine")
def fine(arm: TrainedArm) -> Quantities:
    answers = answers_of(arm.model, arm.answerer("fine_train"), arm.data("fine"), "fine")
    _, right_kind, inside = judged(answers, breed_kinds(arm.data("fine_train")))
    coarse, breed = coarse_fine_scores(answers, right_kind, inside)
    return {"fine": breed.value, "coarse": coarse.value}


@measure("texture_classes", "accuracy on pure texture by class: median, highest, share near chance", "probe",
         "texture_only")  # fmt: skip
def texture_classes(arm: TrainedArm) -> Quantities:
    """Classes are judged as in the audit of this name; nothing where no class has enough images."""
    answerer = arm.answerer()
    found = judged_classes(class_accuracies(arm.model, answerer, arm.data("texture_only")))
    if not found:
        return {}
    shares = np.array(list(found.values()))
    return {
        "texture_classes/median": float(np.median(shares)),
        "texture_classes/highest": float(shares.max()),
        "texture_classes/near_chance": float((shares < near_chance_bound(len(answerer.classes))).mean()),
    }


def of_pairs(lab: Lab) -> dict[str, Any]:
    """What the pairs of a lab depend on."""
    return {"pairs": {"patch": lab.patch, "views": lab.base.get("views"), "size": lab.base["size"]}}


@measure("similarity", "mean cosine and spread of four kinds of pairs, in evaluation mode", "probe", version=3,
         settings=of_pairs)  # fmt: skip
def similarity(arm: TrainedArm) -> Quantities:
    """The same pairs for every arm."""
    _, found = similarities(arm.model, arm.data("probe"), pair_settings(arm.lab), PAIRED)
    out: Quantities = {}
    for pair in PAIRS:
        out[f"similarity/{pair}"] = float(found[pair].mean())
        out[f"similarity/{pair}_std"] = float(found[pair].std(ddof=1))
    return out


def pair_settings(lab: Lab) -> PairSettings:
    """The lab's views and patches, not the arm's."""
    views: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in lab.base.get("views", {}).items()
    }
    patch = lab.patch.get("patch_size")
    return PairSettings(replace(recipe_of(lab.base["size"]), **views), parse_range(patch) if patch else None)


@measure("ood", "a probe on the first domain, tested on each of the others", "ood_train", "ood/", version=3)
def ood(arm: TrainedArm) -> Quantities:
    """texture_free is the mean over the domains."""
    domains = [role for role in arm.lab.sets if role.startswith("ood/")]
    out = arm.held_out_accuracy("ood_train")
    for role in domains:
        out |= arm.accuracy("ood_train", role)
    return out | mean_of("texture_free", out, domains)


@measure(
    "disjoint", "a probe on shapes in textures that it never saw", "disjoint_train", "disjoint", version=2
)
def disjoint(arm: TrainedArm) -> Quantities:
    return arm.accuracy("disjoint_train", "disjoint")


@measure("corrupted", "the clean probe on one corruption of each family at severity 3", "probe", "corrupted")
def corrupted(arm: TrainedArm) -> Quantities:
    """Radii are scaled to the image."""
    whole = arm.data("corrupted")
    part = whole.select(np.random.default_rng(0).permutation(len(whole))[:CORRUPTED])
    changes = [change("corrupted", corruption=c, severity=SEVERITY) for c in CORRUPTIONS]
    return {"corrupted": float(np.nanmean(right_on_copies(arm.model, arm.answerer(), part, changes)))}
