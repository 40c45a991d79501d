"""Every claim: tables where it holds, where it does not, and pure noise; each decisive difference is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from cuewise.errors import UserError
from cuewise.studies.claims import Claim, Outcome, PairedDifference, word_of
from cuewise.studies.labs import SHAPES, Lab
from cuewise.studies.ns_alpha_color import FORMS
from cuewise.studies.study import Study, choose, studies
from cuewise.studies.table import Table

SEEDS, SCATTER = 5, 0.004
T_975 = 2.7764451  # the quantile of Student's t with SEEDS − 1 degrees of freedom
Means = Mapping[str, Mapping[str, float]]


def made_up(means: Means, rng: np.random.Generator, scatter: float = SCATTER, shared: float = 0.05) -> Table:
    """arm → quantity → mean, five seeds: what a seed does to all arms alike, and noise of each value's own."""
    common = shared * rng.standard_normal(SEEDS)
    drawn = {
        (a, q): v + common + scatter * rng.standard_normal(SEEDS)
        for a, row in means.items()
        for q, v in row.items()
    }
    return Table(
        {a: {s: {q: float(drawn[a, q][s]) for q in row} for s in range(SEEDS)} for a, row in means.items()}
    )


def curve(quantity: str, values: tuple[float, ...], lab: Lab = SHAPES) -> dict[str, dict[str, float]]:
    return {f"α = {a:g}": {quantity: v} for a, v in zip(lab.alphas, values, strict=True)}


def join(*parts: Means) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for part in parts:
        for arm, row in part.items():
            out.setdefault(arm, {}).update(row)
    return out


UP, DOWN = (0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1)
BASE, CENTRED = "α = 0", "α = 2 centred"
PAIRS = {
    "similarity/random": 0.1,
    "similarity/positive": 0.7,
    "similarity/patch": 0.5,
    "similarity/texture": 0.4,
}
BANKS = [f"K = {k}" for k in SHAPES.banks]
GRID = [f"d = {r.replace(':', '–')}" for r in SHAPES.patch_ranges]
JITTER = ("jitter", "jitter, patch", "no jitter", "no jitter, patch")
HEADS = "LooC, colour and rotation"


def pair(patch: float, random: float) -> dict[str, float]:
    return {"similarity/patch": patch, "similarity/random": random}


def gradient(random: float, clean: float) -> Means:
    """Without gradient 0.8 between random pairs and an accuracy of 0.2."""
    without = {f"α = {a:g}": {**pair(0.9, 0.8), "clean": 0.2} for a in SHAPES.gradient_alphas}
    return without | {f"{a} gradient": {**pair(0.4, random), "clean": clean} for a in without}


def row(**values: float) -> dict[str, float]:
    return values


def clean_free(**arms: tuple[float, float]) -> Means:
    return {k: {"clean": c, "texture_free": f} for k, (c, f) in arms.items()}


def banks(plain: tuple[float, ...], patch: tuple[float, ...]) -> Means:
    out = {n: {"clean": v} for n, v in zip(BANKS, plain)}
    return out | {f"{n}, patch": {"clean": v} for n, v in zip(BANKS, patch)}


def heads(z0: float, color: float, rotation: float, all_: float, tasks: tuple[str, ...]) -> dict[str, float]:
    values = {"z0": z0, "z0+color": color, "z0+rotation": rotation, "all": all_}
    return {f"heads/{t}/{s}": v for t in tasks for s, v in values.items()}


OUT = {f"α = {a:g} out": {"similarity/patch": 0.45} for a in SHAPES.out_alphas}
IN = curve("similarity/patch", (0.5, 0.4, 0.3, 0.2))
CASES: dict[tuple[str, str], tuple[Means, Means]] = {
    ("ns-alpha", "10"): ({BASE: PAIRS}, {BASE: PAIRS | {"similarity/texture": 0.09}}),
    ("ns-alpha", "11"): (curve("similarity/patch", DOWN), curve("similarity/patch", UP)),
    ("ns-alpha", "12"): (curve("similarity/texture", DOWN), curve("similarity/texture", UP)),
    ("ns-alpha", "13"): (
        join(curve("similarity/positive", DOWN), curve("similarity/positive_std", UP)),
        join(curve("similarity/positive", DOWN), curve("similarity/positive_std", DOWN)),
    ),
    ("ns-alpha", "14"): (
        join(curve("shape_bias", UP), curve("texture_accuracy", DOWN)),
        join(curve("shape_bias", DOWN), curve("texture_accuracy", DOWN)),
    ),
    ("ns-alpha", "14c"): (curve("shape_accuracy", UP), curve("shape_accuracy", DOWN)),
    ("ns-alpha", "15"): (
        join(curve("clean", (0.5, 0.6, 0.5, 0.4)), curve("texture_free", (0.2, 0.3, 0.4, 0.3))),
        join(curve("clean", (0.5, 0.6, 0.5, 0.4)), curve("texture_free", (0.4, 0.3, 0.2, 0.1))),
    ),
    ("ns-alpha", "16"): (
        join(curve("fine", DOWN), curve("coarse", (0.9, 0.9, 0.9, 0.9))),
        join(curve("fine", DOWN), curve("coarse", (0.9, 0.5, 0.3, 0.1))),
    ),
    ("ns-alpha", "20"): (join(IN, OUT), join(curve("similarity/patch", (0.5, 0.5, 0.5, 0.5)), OUT)),
    ("ns-alpha", "own"): (
        join(curve("shape_bias", UP), {CENTRED: row(shape_bias=0.5)}),
        join(curve("shape_bias", UP), {CENTRED: row(shape_bias=0.25)}),
    ),
    ("ns-alpha", "own2"): (
        {"α = 2": pair(0.2, 0.1), "α = 2 separate": pair(0.4, 0.1)},
        {"α = 2": pair(0.4, 0.1), "α = 2 separate": pair(0.6, 0.4)},
    ),
    ("ns-alpha", "own3"): (gradient(random=0.3, clean=0.1), gradient(random=0.85, clean=0.25)),
    ("ns-alpha", "own4"): (gradient(random=0.8, clean=0.25), gradient(random=0.3, clean=0.1)),
    ("ns-alpha", "22"): (
        {BASE: {"texture_classes/highest": 0.8, "texture_classes/near_chance": 0.7}},
        {BASE: {"texture_classes/highest": 0.8, "texture_classes/near_chance": 0.1}},
    ),
    ("ns-bank", "18a"): (banks((0.5, 0.6, 0.7), (0.6, 0.65, 0.72)), banks((0.5, 0.6, 0.7), (0.6, 0.65, 0.68))),
    ("ns-bank", "18b"): (banks((0.5, 0.6, 0.7), (0.6, 0.65, 0.7)), banks((0.6, 0.65, 0.7), (0.5, 0.6, 0.7))),
    ("ns-color", "17"): (
        {n: row(clean=v) for n, v in zip(JITTER, (0.6, 0.61, 0.4, 0.5))},
        {n: row(clean=v) for n, v in zip(JITTER, (0.6, 0.7, 0.4, 0.41))},
    ),
    ("ns-byol", "19"): (
        {"BYOL": row(clean=0.6), "patch": row(clean=0.59), "regular": row(clean=0.4)},
        {"BYOL": row(clean=0.6), "patch": row(clean=0.5), "regular": row(clean=0.45)},
    ),
    ("ns-byol", "19s"): (
        {"BYOL": row(clean=0.6), "patch, strong": row(clean=0.59), "regular, strong": row(clean=0.4)},
        {"BYOL": row(clean=0.6), "patch, strong": row(clean=0.5), "regular, strong": row(clean=0.45)},
    ),
    ("ns-patch-grid", "21a"): (
        clean_free(**{GRID[0]: (0.5, 0.2), GRID[-1]: (0.5, 0.3)}),
        clean_free(**{GRID[0]: (0.3, 0.2), GRID[-1]: (0.6, 0.3)}),
    ),
    ("ns-patch-augment", "21b"): (
        clean_free(**{f"{GRID[-1]}, as they are": (0.5, 0.3), f"{GRID[-1]}, + turns": (0.48, 0.28)}),
        clean_free(**{f"{GRID[-1]}, as they are": (0.5, 0.3), f"{GRID[-1]}, + turns": (0.6, 0.4)}),
    ),
    ("ssl-supervised", "40a"): (
        {n: {"shape_bias": v} for n, v in (("supervised", 0.3), ("MoCo", 0.4), ("BYOL", 0.5))},
        {n: {"shape_bias": v} for n, v in (("supervised", 0.3), ("MoCo", 0.4), ("BYOL", 0.2))},
    ),
    ("ssl-supervised", "40b"): (
        {n: {"clean": 0.6, "corrupted": v} for n, v in (("supervised", 0.3), ("MoCo", 0.4), ("BYOL", 0.5))},
        {n: {"clean": v + 0.1, "corrupted": v} for n, v in (("supervised", 0.3), ("MoCo", 0.4), ("BYOL", 0.2))},
    ),
    ("ns-baselines", "12b"): (
        {n: {"similarity/patch": v} for n, v in (("no negatives", 0.6), ("patch", 0.2), ("texture", 0.5))},
        {n: {"similarity/patch": v} for n, v in (("no negatives", 0.6), ("patch", 0.5), ("texture", 0.2))},
    ),
    ("ns-baselines", "T1"): (
        {n: {"texture_free": v} for n, v in (("patch", 0.5), ("mochi", 0.3), ("ifm", 0.4), ("debiased", 0.3), ("hard", 0.4))},
        {n: {"texture_free": v} for n, v in (("patch", 0.5), ("mochi", 0.3), ("ifm", 0.6), ("debiased", 0.3), ("hard", 0.4))},
    ),
    ("looc-rotation", "30a"): (
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4)},
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.85)},
    ),
    ("looc-rotation", "30b"): (
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4), "LooC": row(rotation=0.79)},
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4), "LooC": row(rotation=0.5)},
    ),
    ("looc-rotation", "30c"): (
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4), "MoCo + rotation, same": row(rotation=0.45)},
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4), "MoCo + rotation, same": row(rotation=0.75)},
    ),
    ("looc-color", "31"): (
        {"MoCo": row(colour=0.4, clean=0.6), "LooC": row(colour=0.7, clean=0.6)},
        {"MoCo": row(colour=0.4, clean=0.6), "LooC": row(colour=0.7, clean=0.5)},
    ),
    ("looc-heads", "32a"): (
        {HEADS: heads(0.3, 0.8, 0.4, 0.8, ("colour",)) | heads(0.3, 0.4, 0.8, 0.8, ("rotation",))},
        {HEADS: heads(0.3, 0.8, 0.4, 0.8, ("colour", "rotation"))},
    ),
    ("looc-heads", "32b"): (
        {HEADS: heads(0.3, 0.5, 0.5, 0.8, ("class", "colour", "rotation"))},
        {HEADS: heads(0.3, 0.9, 0.5, 0.8, ("class", "colour", "rotation"))},
    ),
    ("looc-heads", "34"): (
        {HEADS: {"entropy/several": 1.5, "entropy/texture": 1.2}},
        {HEADS: {"entropy/several": 1.2, "entropy/texture": 1.5}},
    ),
    ("looc-addone", "33"): (
        {"LooC": row(clean=0.6), "AddOne": row(clean=0.5)},
        {"LooC": row(clean=0.5), "AddOne": row(clean=0.6)},
    ),
}  # fmt: skip
PARTS = ("CAN", "no contrast", "no reconstruction", "no denoising", "MAE", "SimCLR-ViT")


def can(clean: Sequence[float], ratio: float = 0.6) -> Means:
    """Accuracies of CAN, of CAN without each term, of MAE and of SimCLR-ViT; CAN's error over that of the mean."""
    return join({n: row(clean=v) for n, v in zip(PARTS, clean)}, {"CAN": {"reconstruction/ratio": ratio}})


CASES |= {
    ("can", "38"): (can((0.6, 0.4, 0.5, 0.55, 0.45)), can((0.6, 0.57, 0.5, 0.4, 0.45))),
    ("can", "39"): ({"CAN": row(gflops=0.5), "SimCLR-ViT": row(gflops=0.9)},
                    {"CAN": row(gflops=0.9), "SimCLR-ViT": row(gflops=0.9)}),
    ("can", "38u"): ({"CAN": row(clean=0.6, knn=0.6), "untrained": row(clean=0.4, knn=0.4)},
                     {"CAN": row(clean=0.6, knn=0.4), "untrained": row(clean=0.4, knn=0.4)}),
    ("can", "38w"): ({"CAN, contrast 1": row(clean=0.6), "CAN": row(clean=0.5)},
                     {"CAN, contrast 1": row(clean=0.45), "CAN": row(clean=0.5)}),
    ("can-longtail", "38b"): (can((0.6, 0, 0, 0, 0.45, 0.5)), can((0.6, 0, 0, 0, 0.45, 0.7))),
}  # fmt: skip


def scenes(plain: float, dilate: float, shift: float, single: float, one: float) -> Means:
    on_scenes = {n: row(map=v) for n, v in (("scene–scene", plain), ("dilate", dilate), ("shift", shift))}
    return on_scenes | {"single, scene–scene": {"map/single": single}, "single, dilate": {"map/single": one}}


def ball(quantity: str, without: float, with_: float) -> Means:
    return {"λ = 0": {quantity: without}, "λ = 0.1": {quantity: with_}}


CASES |= {
    ("oac", "35"): (scenes(0.4, 0.5, 0.45, 0, 0), scenes(0.4, 0.5, 0.55, 0, 0)),
    ("oac", "35b"): (scenes(0.4, 0.5, 0, 0.8, 0.8), scenes(0.4, 0.5, 0, 0.8, 0.9)),
    ("hcl", "36"): (ball("norm/log_ratio", 0.0, 0.3), ball("norm/log_ratio", 0.4, 0.2)),
    ("hcl", "36b"): (ball("rho", 0.0, 0.4), ball("rho", 0.5, 0.4)),
    ("hcl", "37"): (ball("auroc", 0.5, 0.7), ball("auroc", 0.3, 0.4)),
}
AP, MIOU, MAP = "detect/ap50", "segment/miou", "map"
SMOOTHED = ("MoCo smooth", "MoCo", "DenseCL smooth", "DenseCL")


def each(quantity: str, **values: float) -> Means:
    """One quantity of the arms whose names have _ for a space."""
    return {arm.replace("_", " "): {quantity: value} for arm, value in values.items()}


CASES |= {
    ("transfer", "D1"): ({a: {AP: v} for a, v in zip(SMOOTHED, (0.6, 0.5, 0.7, 0.6))},
                         {a: {AP: v} for a, v in zip(SMOOTHED, (0.6, 0.5, 0.5, 0.6))}),
    ("transfer", "D2"): (each(MIOU, DenseCL_smooth=0.6, DenseCL=0.5), each(MIOU, DenseCL_smooth=0.4, DenseCL=0.5)),
    ("transfer", "D3"): (each(MAP, object_crops=0.6, MoCo=0.5), each(MAP, object_crops=0.4, MoCo=0.5)),
    ("transfer", "D4"): ({a: {AP: v, MIOU: v} for a, v in (("MoCo", 0.6), ("DenseCL", 0.6), ("random", 0.2))},
                         {a: {AP: v, MIOU: v} for a, v in (("MoCo", 0.6), ("DenseCL", 0.1), ("random", 0.2))}),
}  # fmt: skip


def tuned(**arms: tuple[float, float, float]) -> dict[str, dict[str, float]]:
    """Shape bias, accuracy and accuracy in other domains of arms: was, a0, a2, a3, unkept, moco."""
    names = {"was": "as it was", "a0": "α = 0", "a2": "α = 2", "a3": "α = 3", "unkept": "without keep"}
    return {
        names.get(arm, arm): {
            **{f"shape_bias{half}": bias for half in ("", "/confirmed")},
            **{f"own/accuracy{half}": right for half in ("", "/confirmed")},
            "ood": ood,
        }
        for arm, (bias, right, ood) in arms.items()
    }


WAS = (0.35, 0.70, 0.40)
CASES |= {
    ("tune", "T1"): (tuned(was=WAS, a0=(0.5, 0.6, 0), a2=(0.6, 0.6, 0)), tuned(was=WAS, a0=(0.3, 0.6, 0), a2=(0.25, 0.6, 0))),
    ("tune", "T2"): (tuned(was=WAS, a0=(0.5, 0.69, 0), a2=(0.6, 0.68, 0)),
                     tuned(was=WAS, a0=(0.4, 0.60, 0), a2=(0.5, 0.60, 0))),
    ("tune", "T3"): (tuned(was=WAS, a0=(0, 0, 0.45), a2=(0, 0, 0.45)), tuned(was=WAS, a0=(0, 0, 0.4), a2=(0, 0, 0.3))),
    ("tune", "T4"): (tuned(a0=WAS, a2=(0.45, 0, 0)), tuned(a0=WAS, a2=(0.30, 0, 0))),
    ("tune", "T5"): (tuned(a0=WAS, a3=(0.45, 0, 0)), tuned(a0=WAS, a3=(0.30, 0, 0))),
    ("tune", "T6"): (tuned(a2=WAS, unkept=(0, 0.6, 0)), tuned(a2=WAS, unkept=(0, 0.8, 0))),
    ("tune", "T7"): (tuned(a2=WAS, moco=(0, 0.5, 0.3)), tuned(a2=WAS, moco=(0, 0.8, 0.5))),
    ("tune", "T8"): ({"as it was": {"own/corrupted": 0.5}, "α = 2": {"own/corrupted": 0.52}},
                     {"as it was": {"own/corrupted": 0.5}, "α = 2": {"own/corrupted": 0.4}}),
}  # fmt: skip


def labels(plain: Sequence[float], filtered: Sequence[float], gold: float) -> Means:
    """Errors at p = 0.2, 0.6 and 1 with that share of gold, without and with the filter."""
    noises = (0.2, 0.6, 1.0)
    return {f"p = {p:g}, gold {gold:g}": row(error=e) for p, e in zip(noises, plain)} | {
        f"p = {p:g}, gold {gold:g}, filtered": row(error=e) for p, e in zip(noises, filtered)
    }


RISING, LOWER = (0.2, 0.4, 0.8), (0.18, 0.38, 0.7)
CASES |= {
    ("adf-labels", "26"): (join(labels(RISING, LOWER, 0.05), labels(RISING, LOWER, 0.1)),
                           join(labels(RISING, LOWER, 0.05), labels((0.4, 0.2, 0.8), LOWER, 0.1))),
    ("adf-labels", "26b"): (join(labels(RISING, LOWER, 0.05), labels((0.15, 0.42, 0.6), LOWER, 0.1)),
                            join(labels(RISING, LOWER, 0.05), labels((0.15, 0.42, 0.9), LOWER, 0.1))),
    ("adf-labels", "26c"): (labels(RISING, LOWER, 0.05), labels(RISING, (0.1, 0.3, 0.75), 0.05)),
    ("adf-labels", "glc"): ({"p = 0.6, gold 0.05": row(error=0.3), "p = 0.6, not corrected": row(error=0.5)},
                            {"p = 0.6, gold 0.05": row(error=0.5), "p = 0.6, not corrected": row(error=0.3)}),
}  # fmt: skip
ORIGINAL, BOTH, ONLY = "original", "original ∪ anisotropic", "anisotropic only"
LEARNED = "Pix2Pix-Anisotropic"
SETS = ("silhouette", "sketch", "disjoint")


def mixed(
    when: str,
    sets: Sequence[str],
    plain: Sequence[float],
    both: Sequence[float],
    only: float = 0.0,
    arm: str = BOTH,
) -> Means:
    """Accuracies of classifiers trained on original images and on both, before or after fine-tuning."""
    named = [f"{when}/{name}" for name in sets]
    rows = {ORIGINAL: dict(zip(named, plain)), arm: dict(zip(named, both))}
    return rows | ({ONLY: {named[0]: only}} if only else {})


def cartoons(free: float, clean: float) -> Means:
    plain = {"before/texture_free": 0.3, "before/clean": 0.6}
    return {"cartoon": {"before/texture_free": free, "before/clean": clean}, ORIGINAL: plain}


def puzzles(**arms: float) -> Means:
    names = {"plain": "Jigsaw", "whole": "Jigsaw, whole images", "tiles": "Jigsaw, patch-wise"}
    return {names[arm]: {"pretext/accuracy": v, "wide/texture_free": v} for arm, v in arms.items()}


def probed(first: str, second: str, one: float, other: float, *quantities: str) -> Means:
    return {first: dict.fromkeys(quantities, one), second: dict.fromkeys(quantities, other)}


WIDE_SETS = ("wide/clean", "wide/texture_free")
CHANGED = ("clean", "lowpass", "noise")
CASES |= {
    ("adf-supervised", "23a"): (mixed("after", (*SETS, "clean"), (0.3, 0.3, 0.3, 0.6), (0.4, 0.4, 0.4, 0.595)),
                                mixed("after", (*SETS, "clean"), (0.3, 0.3, 0.3, 0.6), (0.4, 0.4, 0.4, 0.5))),
    ("adf-supervised", "23b"): (mixed("before", SETS, (0.3, 0.3, 0.3), (0.4, 0.4, 0.4)),
                                mixed("before", SETS, (0.3, 0.3, 0.3), (0.4, 0.2, 0.4))),
    ("adf-supervised", "23c"): (mixed("before", ("clean",), (0.6,), (0.5,), 0.4),
                                mixed("before", ("clean",), (0.6,), (0.5,), 0.7)),
    ("adf-supervised", "23d"): (mixed("before", ("clean", *SETS), (0.6, 0.3, 0.3, 0.3), (0.5, 0.35, 0.5, 0.35)),
                                mixed("before", ("clean", *SETS), (0.6, 0.3, 0.3, 0.3), (0.5, 0.6, 0.5, 0.35))),
    ("adf-supervised", "23e"): (mixed("before", ("clean", *SETS), (0.6, 0.3, 0.3, 0.3), (0.5, 0.35, 0.5, 0.35), arm=LEARNED),
                                mixed("before", ("clean", *SETS), (0.6, 0.3, 0.3, 0.3), (0.5, 0.6, 0.5, 0.35), arm=LEARNED)),
    ("adf-supervised", "24a"): (mixed("before", CHANGED, (0.6, 0.3, 0.3), (0.6, 0.4, 0.4)),
                                mixed("before", CHANGED, (0.6, 0.3, 0.3), (0.6, 0.4, 0.2))),
    ("adf-supervised", "24b"): (mixed("before", ("clean", "weather"), (0.6, 0.5), (0.6, 0.4)),
                                mixed("before", ("clean", "weather"), (0.6, 0.4), (0.6, 0.5))),
    ("adf-supervised", "27a"): (mixed("before", ("saliency",), (0.3,), (0.4,)),
                                mixed("before", ("saliency",), (0.4,), (0.3,))),
    ("adf-supervised", "27b"): (mixed("before", ("confidence",), (0.6,), (0.7,)),
                                mixed("before", ("confidence",), (0.7,), (0.6,))),
    ("adf-filters", "25a"): (probed("anisotropic, 50 steps", BOTH, 0.4, 0.5, "after/clean", "before/sketch"),
                             probed("anisotropic, 50 steps", BOTH, 0.6, 0.5, "after/clean", "before/sketch")),
    ("adf-filters", "25b"): (probed(BOTH, "gaussian", 0.5, 0.4, "before/sketch"),
                             probed(BOTH, "gaussian", 0.4, 0.5, "before/sketch")),
    ("adf-filters", "own"): (cartoons(0.4, 0.6), cartoons(0.4, 0.5)),
    ("adf-jigsaw", "29a"): (puzzles(plain=0.9, whole=0.9, tiles=0.8), puzzles(plain=0.9, whole=0.9, tiles=0.05)),
    ("adf-jigsaw", "29b"): (puzzles(whole=0.9, tiles=0.8), puzzles(whole=0.8, tiles=0.9)),
    ("adf-jigsaw", "29c"): (puzzles(plain=0.3, tiles=0.4), puzzles(plain=0.4, tiles=0.3)),
    ("adf-ssl", "T21a"): (probed("MoCo, anisotropic", "MoCo", 0.5, 0.4, *WIDE_SETS),
                          probed("MoCo, anisotropic", "MoCo", 0.3, 0.4, *WIDE_SETS)),
    ("adf-ssl", "T21b"): (probed("DenseCL, anisotropic", "DenseCL", 0.5, 0.4, *WIDE_SETS),
                          probed("DenseCL, anisotropic", "DenseCL", 0.3, 0.4, *WIDE_SETS)),
    ("adf-stylised", "28a"): (probed("MoCo, stylised", "MoCo, natural", 0.5, 0.7, "pretext/early"),
                              probed("MoCo, stylised", "MoCo, natural", 0.7, 0.5, "pretext/early")),
    ("adf-stylised", "28b"): (
        join(*(probed(f"{m}, stylised", f"{m}, natural", 0.4, 0.5, "wide/clean") for m in ("MoCo", "Jigsaw"))),
        join(*(probed(f"{m}, stylised", f"{m}, natural", 0.6, 0.5, "wide/clean") for m in ("MoCo", "Jigsaw"))),
    ),
}  # fmt: skip
CASES |= {("ns-alpha-color", n): case for (s, n), case in CASES.items() if s == "ns-alpha" and n not in FORMS}
CLAIMS = [(s, c.number) for s, study in studies().items() for c in study.claims]


def claim(study: str, number: str) -> Claim:
    return next(c for c in studies()[study].claims if c.number == number)


def test_every_claim_has_its_tables() -> None:
    assert sorted(CASES) == sorted(CLAIMS)


@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_held_and_not_held(study: str, number: str) -> None:
    held, broken = CASES[study, number]
    judge, rng = claim(study, number).judge, np.random.default_rng(0)
    good, bad = judge(made_up(held, rng), SHAPES), judge(made_up(broken, rng), SHAPES)
    assert good.word == "held", good.numbers
    assert good.seeds == SEEDS
    assert bad.word in ("not held", "opposite"), bad.numbers
    assert judge(Table({}), SHAPES).word == "not measured"


@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_a_missing_arm_is_no_verdict(study: str, number: str) -> None:
    """With a decisive arm left out (`--arms`) a claim is not measured."""
    held, _ = CASES[study, number]
    needed = {arm for d in claim(study, number).differences(SHAPES) for arm, _ in d.cells}
    for left_out in needed:
        rest = made_up({a: row for a, row in held.items() if a != left_out}, np.random.default_rng(0))
        assert claim(study, number).judge(rest, SHAPES).word == "not measured", left_out


@pytest.mark.parametrize("scale", [0.001, 0.1])
@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_noise_is_not_held(study: str, number: str, scale: float) -> None:
    """No effect anywhere, five seeds: held in at most 5 % of 500 tables (2.5 % is expected for one difference)."""
    judged = claim(study, number)
    cells = list(dict.fromkeys(c for d in judged.differences(SHAPES) for c in d.cells))
    means: dict[str, dict[str, float]] = {}
    for arm, quantity in cells:
        means.setdefault(arm, {})[quantity] = 0.5
    for d in judged.differences(SHAPES):
        if len(d.cells) == 1:  # against a fixed value: no effect is that value
            ((arm, quantity),) = d.cells
            means[arm][quantity] = d.sign * d.margin / float(d.of(np.ones(1))[0])
    rng = np.random.default_rng(1)
    shared = 0.05 * rng.standard_normal((500, SEEDS))
    drawn = {(a, q): means[a][q] + shared + scale * rng.standard_normal(shared.shape) for a, q in cells}
    words = words_of(judged, drawn)
    for n in range(3):  # the shortcut below says what the judge says
        table = {
            a: {s: {q: float(drawn[a, q][n, s]) for q in row} for s in range(SEEDS)}
            for a, row in means.items()
        }
        assert judged.judge(Table(table), SHAPES).word == words[n]
    assert words.count("held") <= 25
    assert words.count("opposite") <= 25


def words_of(judged: Claim, drawn: dict[tuple[str, str], np.ndarray]) -> list[str]:
    """The verdicts on many tables at once; (arm, quantity) → tables × seeds."""
    columns = []
    for d in judged.differences(SHAPES):
        x = d.of(*(drawn[c].ravel() for c in d.cells)).reshape(-1, SEEDS)
        mean, half = x.mean(1), T_975 * x.std(1, ddof=1) / SEEDS**0.5
        columns.append([Outcome(d, m, m - h, m + h).verdict for m, h in zip(mean, half)])
    return [word_of(verdicts) for verdicts in zip(*columns)]


def weights(differences: Sequence[PairedDifference], cells: list[tuple[str, str]]) -> np.ndarray:
    """PairedDifference × cell, by asking with one cell at a time."""
    unit = np.eye(len(cells))  # a "seed" for each cell
    return np.stack([d.of(*(unit[cells.index(c)] for c in d.cells)) for d in differences])


@pytest.mark.parametrize(("study", "number"), [c for c in CLAIMS if c[1] != "15"])
def test_every_decisive_difference_decides(study: str, number: str) -> None:
    """All beyond their margins: held; any one of them short of it: not held; all reversed: opposite."""
    judged = claim(study, number)
    differences = judged.differences(SHAPES)
    cells = list(dict.fromkeys(c for d in differences for c in d.cells))
    W = weights(differences, cells)
    margins = np.array([d.margin for d in differences])
    signs = np.array([d.sign for d in differences])

    def verdict(beyond: np.ndarray) -> str | None:
        """On cells that make every difference its margin plus so much; None where no cells do."""
        target = signs * (margins + beyond)
        x = np.linalg.lstsq(W, target, rcond=None)[0]
        if not np.allclose(W @ x, target):
            return None
        means: dict[str, dict[str, float]] = {}
        for (arm, quantity), value in zip(cells, x):
            means.setdefault(arm, {})[quantity] = value
        return judged.judge(made_up(means, np.random.default_rng(2), scatter=1e-4, shared=0.0), SHAPES).word

    assert verdict(np.full(len(differences), 0.2)) in ("held", None)
    assert verdict(np.full(len(differences), -0.9)) in ("opposite", None)
    for i in range(len(differences)):
        beyond = np.full(len(differences), 0.2)
        beyond[i] = -0.2
        assert verdict(beyond) in (("not held", None) if len(differences) > 1 else ("opposite", "not held"))


def judged(study: str, number: str, means: Means, scatter: float = SCATTER) -> str:
    return claim(study, number).judge(made_up(means, np.random.default_rng(3), scatter), SHAPES).word


def test_monotonically_means_every_step() -> None:
    """A curve that rises first does not hold, however far it ends below its start."""
    assert judged("ns-alpha", "11", curve("similarity/patch", (0.4, 0.45, 0.2, 0.1))) == "not held"
    assert judged("ns-alpha", "11", curve("similarity/patch", UP)) == "opposite"


def test_direction_without_an_interval_is_leaning() -> None:
    means = {"LooC": row(clean=0.6), "AddOne": row(clean=0.53)}
    words = {judged("looc-addone", "33", means, scatter) for scatter in (0.001, 0.1)}
    assert words == {"held", "leaning"}


def test_clearly_is_more_than_above() -> None:
    """0.01 in every seed is above, and not clearly above."""
    assert (
        judged("looc-addone", "33", {"LooC": row(clean=0.6), "AddOne": row(clean=0.59)}, 1e-5) == "not held"
    )


def test_the_gain_is_one_of_clean_accuracy_alone() -> None:
    """Claim 18a: what texture-free accuracy gains does not count."""
    plain, patch = ({n: {"clean": 0.5, "texture_free": v} for n in BANKS} for v in (0.2, 0.4))
    means = plain | {f"{n}, patch": r for n, r in patch.items()}
    assert judged("ns-bank", "18a", means) != "held"


def test_no_help_is_not_the_absence_of_evidence() -> None:
    """Claim 21b: help in one accuracy, or no difference, does not hold it."""
    for clean, free in ((0.6, 0.29), (0.5, 0.3), (0.6, 0.4)):
        means = clean_free(**{f"{GRID[-1]}, as they are": (0.5, 0.3), f"{GRID[-1]}, + turns": (clean, free)})
        assert judged("ns-patch-augment", "21b", means) != "held"


def test_one_seed_cannot_hold() -> None:
    table = Table({"LooC": {0: row(clean=0.9)}, "AddOne": {0: row(clean=0.1)}})
    found = claim("looc-addone", "33").judge(table, SHAPES)
    assert found.word == "leaning"
    assert found.numbers == "clean: LooC − AddOne +0.800, claimed > 0.02 (clearly) (1 seed)"


@pytest.mark.parametrize("study", studies().values(), ids=lambda s: s.name)
def test_a_study_is_whole(study: Study) -> None:
    arms = [a.name for a in study.arms(SHAPES)]
    assert len(set(arms)) == len(arms)
    assert study.claims
    for figure in study.figures:
        assert all(set(names) <= set(arms) for names in figure.groups(SHAPES).values())
    assert all(c.strength in "ABC" for c in study.claims)


def test_gradient_through_negatives_is_an_arm_of_moco_only() -> None:
    """SimCLR's negatives take gradient as published."""
    names = {
        m: [a.name for a in studies()["ns-alpha"].arms(replace(SHAPES, main=m))] for m in ("moco", "simclr")
    }
    assert [n for n in names["moco"] if n not in names["simclr"]] == ["α = 2 gradient", "α = 3 gradient"]
    arm = next(
        a for a in studies()["ns-alpha"].arms(replace(SHAPES, main="moco")) if a.name == "α = 3 gradient"
    )
    assert arm.settings["moco"] == {"negatives_gradient": True}


def test_unknown_study() -> None:
    with pytest.raises(
        UserError,
        match=r"no study 'alpha'; did you mean ns-alpha\? there are: .*adf-labels, .*can, can-longtail, ",
    ):
        choose(["alpha"])


def test_all_claims_of_the_papers_are_there() -> None:
    numbers = {"".join(d for d in n if d.isdigit()) for _, n in CLAIMS}
    assert {str(k) for k in (*range(10, 23), *range(30, 40))} <= numbers


def test_patches_of_a_lab_are_for_the_negatives_that_read_them() -> None:
    assert SHAPES.negative(2)["patch_size"] == SHAPES.patch["patch_size"]
    assert "patch_size" not in SHAPES.negative(2, "texture")
