"""Parameters are drawn by torchvision's law, and recipes are as published."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from torchvision import transforms as T

from cuewise.errors import UserError
from cuewise.views import RECIPES, Crop, Jitter, Recipe, ViewParams

DRAWS = 4000


def same_law(ours: list[float], theirs: list[float]) -> None:
    # 1e-4: a true law fails once in ten thousand, and the seeds are fixed
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(375, 500), (500, 375), (64, 64), (60, 200), (300, 90), (40, 41)])
@pytest.mark.parametrize("low", [0.08, 0.2])
def test_crops_follow_torchvision(shape: tuple[int, int], low: float) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    recipe = Recipe(scale=(low, 1.0))
    picture = Image.new("RGB", shape[::-1])
    ours = np.array([_crop(recipe, rng, *shape) for _ in range(DRAWS)])
    theirs = np.array(
        [T.RandomResizedCrop.get_params(picture, [low, 1.0], [3 / 4, 4 / 3]) for _ in range(DRAWS)]
    )
    for column in range(4):
        same_law(ours[:, column], theirs[:, column])
    same_law(ours[:, 2] * ours[:, 3], theirs[:, 2] * theirs[:, 3])
    same_law(ours[:, 3] / ours[:, 2], theirs[:, 3] / theirs[:, 2])


def _crop(recipe: Recipe, rng: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
    c = recipe.sample(rng, height, width).crop
    return c.top, c.left, c.height, c.width


@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (10, 1000), (1000, 10), (1, 1)])
def test_the_central_crop_where_ten_attempts_fail(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    recipe = Recipe(scale=(0.9, 1.0))
    picture = Image.new("RGB", shape[::-1])
    theirs = {tuple(T.RandomResizedCrop.get_params(picture, [0.9, 1.0], [3 / 4, 4 / 3])) for _ in range(50)}
    ours = {_crop(recipe, rng, *shape) for _ in range(50)}
    assert len(theirs) == 1
    assert ours == theirs


@pytest.mark.parametrize("strengths", [(0.4, 0.4, 0.4, 0.1), (0.8, 0.8, 0.8, 0.2), (1.5, 0.2, 0.0, 0.5)])
def test_jitter_follows_torchvision(strengths: tuple[float, float, float, float]) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    recipe = Recipe(jitter=strengths, jitter_p=1.0)
    peer = T.ColorJitter(*strengths)
    ours = [recipe.sample(rng, 50, 50).jitter for _ in range(DRAWS)]
    theirs = [
        peer.get_params(peer.brightness, peer.contrast, peer.saturation, peer.hue) for _ in range(DRAWS)
    ]
    for column, name in enumerate(["brightness", "contrast", "saturation", "hue"], start=1):
        if strengths[column - 1]:
            same_law([getattr(j, name) for j in ours], [t[column] for t in theirs])
    letters = [c for c, s in zip("bcsh", strengths) if s]
    orders = Counter(j.order for j in ours)
    assert {"".join(sorted(order)) for order in orders} == {"".join(sorted(letters))}
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_probabilities_and_ranges() -> None:
    rng = np.random.default_rng(0)
    recipe = Recipe(jitter_p=0.8, gray_p=0.2, blur_p=0.5, solarize_p=0.1, rotation_p=0.5)
    drawn = [recipe.sample(rng, 64, 64) for _ in range(DRAWS)]
    for share, p in [
        (sum(d.flip for d in drawn), 0.5),
        (sum(d.jitter is not None for d in drawn), 0.8),
        (sum(d.gray for d in drawn), 0.2),
        (sum(d.blur is not None for d in drawn), 0.5),
        (sum(d.solarize == 128 for d in drawn), 0.1),
        (sum(d.rotation != 0 for d in drawn), 0.5),
    ]:
        assert stats.binomtest(share, DRAWS, p).pvalue > 1e-4
    sigmas = [d.blur for d in drawn if d.blur is not None]
    assert stats.kstest(sigmas, stats.uniform(0.1, 1.9).cdf).pvalue > 1e-4
    turned = Counter(d.rotation for d in drawn if d.rotation)
    assert stats.chisquare([turned[90], turned[180], turned[270]]).pvalue > 1e-4
    jitter_and_gray = np.corrcoef([d.jitter is not None for d in drawn], [d.gray for d in drawn])[0, 1]
    assert abs(jitter_and_gray) < 0.07


def test_recipes_are_as_published() -> None:
    common = {"size": 224, "ratio": (3 / 4, 4 / 3), "flip_p": 0.5, "rotation_p": 0.0}
    color = {"jitter_p": 0.8, "gray_p": 0.2, "blur_sigma": (0.1, 2.0)}
    expected = {
        "moco-v2": {
            **color,
            "scale": (0.2, 1.0),
            "jitter": (0.4, 0.4, 0.4, 0.1),
            "blur_p": 0.5,
            "solarize_p": 0.0,
        },
        "simclr": {
            **color,
            "scale": (0.08, 1.0),
            "jitter": (0.8, 0.8, 0.8, 0.2),
            "blur_p": 0.5,
            "solarize_p": 0.0,
        },
        "byol-1": {
            **color,
            "scale": (0.08, 1.0),
            "jitter": (0.4, 0.4, 0.2, 0.1),
            "blur_p": 1.0,
            "solarize_p": 0.0,
        },
        "byol-2": {
            **color,
            "scale": (0.08, 1.0),
            "jitter": (0.4, 0.4, 0.2, 0.1),
            "blur_p": 0.1,
            "solarize_p": 0.2,
        },
        "supervised": {
            "scale": (0.08, 1.0),
            "jitter_p": 0.0,
            "gray_p": 0.0,
            "blur_p": 0.0,
            "solarize_p": 0.0,
        },
    }
    plain = {"jitter_p": 0.0, "gray_p": 0.0, "blur_p": 0.0, "solarize_p": 0.0}
    expected |= {
        "insdis": {
            **plain,
            "scale": (0.08, 1.0),
            "jitter": (0.4, 0.4, 0.4, 0.4),
            "jitter_p": 1.0,
            "gray_p": 0.2,
        },
        "mae": {**plain, "scale": (0.2, 1.0)},
        "cmc": {**plain, "scale": (0.2, 1.0)},
        "infomin": {**expected["simclr"], "scale": (0.2, 1.0)},
        "jigsaw": {**plain, "scale": (0.6, 1.0)},
        "puzzle": {**plain, "scale": (1.0, 1.0), "ratio": (1.0, 1.0), "flip_p": 0.0, "gray_p": 0.3},
        "tune": {**plain, "scale": (0.4, 1.0), "jitter": (0, 0, 0, 0), "jitter_p": 0.8},
        "pix2pix": {**plain, "scale": (0.5, 1.0)},
    }
    assert set(RECIPES) == set(expected)
    for name, values in expected.items():
        for field, value in {**common, **values}.items():
            assert getattr(RECIPES[name], field) == value, (name, field)


def test_switches() -> None:
    moco = RECIPES["moco-v2"]
    off = moco.with_color_jitter(False)
    assert moco.with_color_jitter(True) == moco
    assert off == replace(moco, jitter_p=0.0)
    assert replace(moco, size=56).scaled_blur().blur_sigma == pytest.approx((0.025, 0.5))


def test_a_switch_leaves_every_other_parameter_as_it_was() -> None:
    moco = RECIPES["moco-v2"]
    for seed in range(50):
        one = moco.sample(np.random.default_rng(seed), 90, 70)
        other = moco.with_color_jitter(False).sample(np.random.default_rng(seed), 90, 70)
        assert other == replace(one, jitter=None)


def test_the_count_of_random_numbers_is_always_the_same() -> None:
    # a thin image needs many attempts, a square one few: what follows must not shift
    for recipe in RECIPES.values():
        one, other = np.random.default_rng(5), np.random.default_rng(5)
        recipe.sample(one, 10, 1000)
        RECIPES["supervised"].sample(other, 64, 64)
        assert one.bit_generator.state == other.bit_generator.state


def test_parameters_survive_json_and_can_be_copied() -> None:
    rng = np.random.default_rng(0)
    recipe = replace(RECIPES["byol-2"], rotation_p=0.5, blur_p=0.5)
    drawn = [recipe.sample(rng, 90, 120) for _ in range(30)]
    for params in drawn:
        assert ViewParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params
    copied = replace(drawn[0], jitter=drawn[1].jitter, gray=drawn[1].gray)
    differing = {f.name for f in fields(ViewParams) if getattr(copied, f.name) != getattr(drawn[0], f.name)}
    assert differing <= {"jitter", "gray"}
    assert copied.jitter == drawn[1].jitter


@pytest.mark.parametrize(
    "wrong",
    [
        {"flip_p": 1.5},
        {"scale": (0.5, 0.1)},
        {"scale": (0.0, 1.0)},
        {"size": 0},
        {"jitter": (0.4, 0.4, 0.4, 0.6)},
        {"jitter": (-0.1, 0.4, 0.4, 0.1)},
    ],
)
def test_impossible_recipes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"recipe {next(iter(wrong))}="):
        Recipe(**wrong)  # type: ignore[arg-type]


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(UserError, match="rotation 45"):
        ViewParams(Crop(0, 0, 1, 1), rotation=45)
    with pytest.raises(UserError, match="blur -1"):
        ViewParams(Crop(0, 0, 1, 1), blur=-1.0)
    with pytest.raises(UserError, match="order 'bb'"):
        Jitter(order="bb")
    with pytest.raises(UserError, match=r"hue 0\.7"):
        Jitter(hue=0.7)
