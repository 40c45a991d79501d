"""Every claim on made-up tables: one where it holds, one where it does not, one where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cuewise.errors import UserError
from cuewise.studies.labs import SHAPES, Lab
from cuewise.studies.ns_alpha_color import FORMS
from cuewise.studies.study import Study, choose, studies
from cuewise.studies.table import Table

NOISE = (-0.004, 0.0, 0.005)  # of three seeds, the same in all arms
Means = Mapping[str, Mapping[str, float]]


def made_up(means: Means) -> Table:
    """arm → quantity → mean, with three seeds around it."""
    return Table(
        {a: {s: {q: v + e for q, v in row.items()} for s, e in enumerate(NOISE)} for a, row in means.items()}
    )


def curve(quantity: str, values: tuple[float, ...], lab: Lab = SHAPES) -> dict[str, dict[str, float]]:
    return {f"α = {a:g}": {quantity: v} for a, v in zip(lab.alphas, values, strict=True)}


def join(*parts: Means) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for part in parts:
        for arm, row in part.items():
            out.setdefault(arm, {}).update(row)
    return out


UP, DOWN, HUMP = (0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1), (0.1, 0.4, 0.3, 0.11)
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
        join(curve("clean", (0.5, 0.6, 0.5, 0.4)), curve("texture_free", (0.2, 0.3, 0.35, 0.3))),
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
    ("ns-alpha", "own3"): (gradient(random=0.3, clean=0.1), gradient(random=0.8, clean=0.25)),
    ("ns-alpha", "own4"): (gradient(random=0.8, clean=0.25), gradient(random=0.3, clean=0.1)),
    ("ns-alpha", "22"): (
        {BASE: {"texture_classes/median": 0.05, "texture_classes/highest": 0.8, "texture_classes/near_chance": 0.7}},
        {BASE: {"texture_classes/median": 0.5, "texture_classes/highest": 0.8, "texture_classes/near_chance": 0.1}},
    ),
    ("ns-bank", "18a"): (banks((0.5, 0.6, 0.7), (0.6, 0.65, 0.71)), banks((0.5, 0.6, 0.7), (0.6, 0.65, 0.69))),
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
        clean_free(**dict(zip(GRID, ((0.5, 0.2), (0.5, 0.2), (0.5, 0.3), (0.5, 0.4))))),
        clean_free(**dict(zip(GRID, ((0.3, 0.2), (0.5, 0.2), (0.5, 0.2), (0.6, 0.3))))),
    ),
    ("ns-patch-grid", "21b"): (
        clean_free(**{GRID[-1]: (0.5, 0.3), f"{GRID[-1]}, flips and turns": (0.5, 0.29)}),
        clean_free(**{GRID[-1]: (0.5, 0.3), f"{GRID[-1]}, flips and turns": (0.6, 0.4)}),
    ),
    ("ns-baselines", "12b"): (
        {n: {"similarity/patch": v} for n, v in (("no negatives", 0.6), ("patch", 0.2), ("texture", 0.5))},
        {n: {"similarity/patch": v} for n, v in (("no negatives", 0.6), ("patch", 0.5), ("texture", 0.2))},
    ),
    ("ns-baselines", "T1"): (
        {n: {"texture_free": v} for n, v in (("patch", 0.5), ("mochi", 0.3), ("ifm", 0.4))},
        {n: {"texture_free": v} for n, v in (("patch", 0.5), ("mochi", 0.3), ("ifm", 0.6))},
    ),
    ("looc-rotation", "30a"): (
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.4)},
        {"MoCo": row(rotation=0.8), "MoCo + rotation": row(rotation=0.8)},
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
CASES |= {("ns-alpha-color", n): case for (s, n), case in CASES.items() if s == "ns-alpha" and n not in FORMS}
CLAIMS = [(s, c.number) for s, study in studies().items() for c in study.claims]


def claim(study: str, number: str):
    return next(c for c in studies()[study].claims if c.number == number)


def test_every_claim_has_its_tables() -> None:
    assert sorted(CASES) == sorted(CLAIMS)


@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_held_and_not_held(study: str, number: str) -> None:
    held, broken = CASES[study, number]
    judge = claim(study, number).judge
    good, bad = judge(made_up(held), SHAPES), judge(made_up(broken), SHAPES)
    assert good.word == "held", good.numbers
    assert bad.word == "not held", bad.numbers
    assert any(c.isdigit() for c in good.numbers)
    assert judge(Table({}), SHAPES).word == "not measured"


@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_a_missing_arm_is_no_verdict(study: str, number: str) -> None:
    """With one arm left out (`--arms`) a claim stands on the others, or is not measured."""
    held, _ = CASES[study, number]
    for left_out in held:
        rest = {a: row for a, row in held.items() if a != left_out}
        assert claim(study, number).judge(made_up(rest), SHAPES).word in ("held", "not measured"), left_out


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
    with pytest.raises(UserError, match=r"no study 'alpha'; there are: looc-addone, .*ns-alpha"):
        choose(["alpha"])


def test_all_claims_of_the_papers_are_there() -> None:
    numbers = {"".join(d for d in n if d.isdigit()) for _, n in CLAIMS}
    assert {str(k) for k in (*range(10, 23), *range(30, 35))} <= numbers
