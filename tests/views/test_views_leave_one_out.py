"""Leave-one-out views: exactly one parameter is shared; styles and the user's own augmentations can be drawn and copied."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pillow_views import photo

from cuewise.cues.stylize import StyleDraw
from cuewise.data import Sample
from cuewise.errors import UserError
from cuewise.views import (
    RECIPES,
    Recipe,
    Styles,
    View,
    ViewParams,
    Views,
    apply,
    augmentation,
    augmentations,
    register_augmentation,
)

MODULE = sys.modules["cuewise.views.augmentations"]
FULL = replace(RECIPES["moco-v2"], size=32, rotation_p=0.5, style_p=0.5)
UNITS = {"color": ("jitter", "gray"), "rotation": ("rotation",), "texture": ("style",)}


def keys(recipe: Recipe = FULL, names: tuple[str, ...] = tuple(UNITS), **more: object) -> Views:
    own = [View(f"key:{name}", recipe, copy=(name,)) for name in names]
    return Views([View("query", recipe), View("key", recipe), *own], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", UNITS)
def test_a_key_shares_one_unit_and_draws_the_rest_anew(name: str) -> None:
    """Flags, factors, order and angle are copied as they are; everything else follows its own law, independent of the query."""
    views, rng = keys(), np.random.default_rng(0)
    agree = {field: 0 for fields in (*UNITS.values(), ("crop", "flip", "blur")) for field in fields}
    for _ in range(300):
        drawn = views.sample(rng, 60, 80).positives
        for field in agree:
            agree[field] += getattr(drawn["query"], field) == getattr(drawn[f"key:{name}"], field)
    for field, count in agree.items():
        if field in UNITS[name]:
            assert count == 300, field
        else:
            assert count < 250, field
    assert agree["crop"] == 0


@pytest.mark.slow
def test_an_independent_key_shares_the_angle_in_a_third_of_the_cases() -> None:
    rng = np.random.default_rng(1)
    pairs = [keys().sample(rng, 60, 80).positives for _ in range(3000)]
    same = np.mean([p["query"].rotation == p["key"].rotation for p in pairs])
    assert same == pytest.approx(1 / 3, abs=0.03)


def test_leaving_out_does_not_move_the_query_and_the_key() -> None:
    """The pair is drawn first: with and without further keys it is the same, as n = 0 is MoCo."""
    image = photo(60, 80)
    few = Views([View("query", FULL), View("key", FULL)])(Sample(image), np.random.default_rng(2)).views
    many = keys()(Sample(image), np.random.default_rng(2)).views
    for role in few:
        np.testing.assert_array_equal(few[role], many[role])


def test_views_without_styles_draw_as_before() -> None:
    """A probability of 0 takes no random numbers: recipes that exist stay as they were."""
    plain = replace(FULL, style_p=0.0)
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    plain.sample(a, 60, 80)
    b.random(35)
    assert a.random() == b.random()


@pytest.mark.slow
def test_shared_says_who_shares_by_chance() -> None:
    views, rng = keys(compared=("rotation", "color")), np.random.default_rng(4)
    image, seen = photo(40, 40), set()
    for _ in range(40):
        state = rng.bit_generator.state
        drawn = views.sample(rng, 40, 40).positives
        rng.bit_generator.state = state
        rotation, color = views(Sample(image), rng).facts["shared"]
        others = ["key", "key:color", "key:rotation", "key:texture"]
        assert rotation.tolist() == [drawn[r].rotation == drawn["query"].rotation for r in others]
        assert rotation[2]
        assert color[1]
        seen.add(tuple(rotation.tolist()))
    assert len(seen) > 3


def test_a_style_is_a_parameter_and_survives_json() -> None:
    rng = np.random.default_rng(5)
    drawn = [FULL.sample(rng, 60, 80) for _ in range(200)]
    styled = [p for p in drawn if p.style]
    assert 70 < len(styled) < 130
    assert len({p.style.style for p in styled if p.style}) > 30
    for params in drawn[:20]:
        assert ViewParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params


def test_the_style_changes_the_view_and_the_copy_has_the_same_style() -> None:
    image = photo(60, 80)
    plain = replace(FULL.sample(np.random.default_rng(6), 60, 80), style=None, jitter=None, blur=None)
    styled = replace(plain, style=StyleDraw(3, 1.0))
    other = replace(plain, style=StyleDraw(4, 1.0))
    pixels = [apply(image, p, 32) for p in (plain, styled, styled, other)]
    assert np.abs(pixels[0].astype(int) - pixels[1]).mean() > 5
    np.testing.assert_array_equal(pixels[1], pixels[2])
    assert np.any(pixels[1] != pixels[3])
    half = apply(image, replace(plain, style=StyleDraw(3, 0.5)), 32).astype(int)
    assert np.abs(half - pixels[0]).mean() < np.abs(pixels[1].astype(int) - pixels[0]).mean()


def test_styles_from_a_folder(tmp_path: Path) -> None:
    for i, colour in enumerate([(250, 10, 10), (10, 10, 250)]):
        noise = np.random.default_rng(i).integers(-9, 10, (48, 48, 3))
        Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8)).save(tmp_path / f"{i}.png")
    styles = Styles(styles=str(tmp_path))
    assert len(styles) == 2
    params = ViewParams(RECIPES["supervised"].sample(np.random.default_rng(0), 40, 40).crop)
    red, blue = (apply(photo(40, 40), replace(params, style=StyleDraw(i, 1.0)), 32, styles) for i in (0, 1))
    assert red[..., 0].mean() > red[..., 2].mean() + 100
    assert blue[..., 2].mean() > blue[..., 0].mean() + 100
    with pytest.raises(UserError, match="no pictures"):
        len(Styles(styles=str(tmp_path / "nothing")))
    with pytest.raises(UserError, match="there are 2 styles"):
        Styles(styles=str(tmp_path), count=3)


def test_copies_made_beforehand_are_found_by_name(tmp_path: Path) -> None:
    names = ["ant/a 1.jpg", "bee/b.jpg"]
    for style in (0, 1):
        for i, name in enumerate(names):
            file = (tmp_path / str(style) / name).with_suffix(".png")
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((30, 30, 3), 100 * style + 50 * i, np.uint8)).save(file)
    styles = Styles(copies=str(tmp_path))
    assert len(styles) == 2
    recipe = Recipe(size=16, style_p=1.0, style_count=len(styles))
    views = Views([View("query", recipe)], styles=styles)
    seen = set()
    for index in (0, 1):
        for seed in range(12):
            sample = Sample(photo(40, 50), index, names[index])
            shown = views(sample, np.random.default_rng(seed)).views["query"]
            assert len(np.unique(shown)) == 1
            seen.add((index, int(shown[0, 0, 0])))
    assert seen == {(0, 0), (0, 100), (1, 50), (1, 150)}
    with pytest.raises(UserError, match="no copy"):
        views(Sample(photo(40, 50), name="cat/c.jpg"), np.random.default_rng(0))
    with pytest.raises(UserError, match="exclude each other"):
        Styles(styles=str(tmp_path), copies=str(tmp_path))


@pytest.fixture
def invert(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """An augmentation of the user's own, gone after the test."""
    monkeypatch.setattr(MODULE, "_AUGMENTATIONS", dict(MODULE._AUGMENTATIONS))
    return register_augmentation(
        "invert",
        "negative film, in part",
        draw=lambda rng: float(rng.integers(1, 5)) / 4 if rng.random() < 0.5 else None,
        apply=lambda view, part: (view + part * (255.0 - 2.0 * view)).astype(np.uint8),
    )


def test_an_augmentation_of_the_users_own_is_left_out_like_any_other(invert) -> None:  # type: ignore[no-untyped-def]
    recipe = invert.switched_on(replace(RECIPES["supervised"], size=24))
    assert invert.switched_off(recipe).own == ()
    views, rng = keys(recipe, ("invert",)), np.random.default_rng(7)
    drawn = [views.sample(rng, 40, 40).positives for _ in range(200)]
    values = [dict(d["query"].own)["invert"] for d in drawn]
    assert 60 < sum(v is None for v in values) < 140
    assert all(d["query"].own == d["key:invert"].own for d in drawn)
    assert sum(d["query"].own == d["key"].own for d in drawn) < 120
    image, plain = photo(40, 40), replace(drawn[0]["query"], own=())
    turned = replace(plain, own=(("invert", 1.0),))
    np.testing.assert_array_equal(apply(image, turned, 24), 255 - apply(image, plain, 24))
    stored = json.loads(json.dumps(turned.to_dict()))
    assert ViewParams.from_dict(stored) == turned
    assert pickle.loads(pickle.dumps(views)) == views


def test_however_much_it_draws_the_other_parameters_stay(invert) -> None:  # type: ignore[no-untyped-def]
    recipe = replace(RECIPES["moco-v2"], size=24, own=("invert",))
    pair = Views([View("query", recipe), View("key", recipe)])
    found = pair.sample(np.random.default_rng(8), 40, 40).positives["key"]
    hungry = replace(invert, draw=lambda rng: float(rng.random(1000).mean()))
    MODULE._AUGMENTATIONS["invert"] = hungry
    again = pair.sample(np.random.default_rng(8), 40, 40).positives["key"]
    assert replace(again, own=()) == replace(found, own=())


def test_a_bad_augmentation_is_named(invert) -> None:  # type: ignore[no-untyped-def]
    params = ViewParams(RECIPES["supervised"].sample(np.random.default_rng(0), 40, 40).crop)
    MODULE._AUGMENTATIONS["invert"] = replace(invert, apply=lambda view, value: view[::2])
    with pytest.raises(UserError, match=r"'invert' gave uint8 \(12, 24, 3\); it must give"):
        apply(photo(40, 40), replace(params, own=(("invert", 1.0),)), 24)
    again = register_augmentation("invert", "anew", draw=lambda rng: 1, apply=lambda view, value: view)
    assert augmentation("invert") is again  # a cell that is run twice
    for name in ("color", "z0", "all", "a b", ""):
        with pytest.raises(UserError, match="take letters"):
            register_augmentation(name, "", draw=lambda rng: 1, apply=lambda view, value: view)


def test_names_are_checked() -> None:
    assert {"color", "rotation", "texture", "blur", "flip", "crop", "solarize"} <= set(augmentations())
    with pytest.raises(UserError, match=r"no augmentation 'colour'; did you mean color\? there are: color"):
        augmentation("colour")
    with pytest.raises(UserError, match="cannot import no_such_module"):
        augmentation("no_such_module:sepia")
    with pytest.raises(UserError, match="crop cannot be removed"):
        augmentation("crop").switched_off(FULL)
    with pytest.raises(UserError, match=r"no augmentation 'colour'; did you mean color\? there are: color"):
        keys(names=("colour",))


def test_switching_on_and_off() -> None:
    for name, unit in augmentations().items():
        if unit.probabilities:
            off = unit.switched_off(FULL)
            assert not any(getattr(off, p) for p in unit.probabilities), name
            on = unit.switched_on(off)
            assert [getattr(on, p) for p in unit.probabilities] == list(unit.probabilities.values())
            assert unit.switched_on(FULL) == FULL or name == "solarize"
