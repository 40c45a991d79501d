"""Texture suppression of views: its shares, what it does to the image, and that it disturbs nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pillow_views import photo

from cuewise import UserError, make, pretrain
from cuewise.config import dotted, read_yaml, resolve
from cuewise.cues.diffusion import perona_malik
from cuewise.data import Sample, open_data
from cuewise.methods import methods
from cuewise.train.log import read_metrics
from cuewise.train.shown import build_views
from cuewise.views import RECIPES, ViewParams, apply
from cuewise.views.suppress import filters, suppressed

MOCO = replace(RECIPES["moco-v2"], size=32)


def amount(view: ViewParams) -> float:
    """The one number that diffusion and the Gaussian draw."""
    assert view.suppress is not None
    ((_, value),) = view.suppress.drawn
    return value


def drawn(kind: str, n: int = 6000, side: int = 224) -> list[ViewParams]:
    recipe = replace(MOCO, suppress=kind, suppress_p=0.5)
    rng = np.random.default_rng(0)
    return [recipe.sample(rng, side, side + 30) for _ in range(n)]


@pytest.mark.parametrize("kind", filters())
def test_half_suppressed_a_quarter_blurred_a_quarter_neither(kind: str) -> None:
    views = drawn(kind)
    shares = [
        np.mean([v.suppress is not None for v in views]),
        np.mean([v.blur is not None for v in views]),
        np.mean([v.blur is None and v.suppress is None for v in views]),
    ]
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.02)
    assert not any(v.blur is not None and v.suppress is not None for v in views)  # never stacked
    assert {v.suppress.kind for v in views if v.suppress} == {kind}


@pytest.mark.slow
def test_amounts_are_as_published_and_scale_with_the_image() -> None:
    for kind in ("anisotropic", "robust"):
        steps = [amount(v) for v in drawn(kind) if v.suppress]
        assert sorted(set(steps)) == list(range(10, 21))
        assert min(steps.count(n) for n in range(10, 21)) > 150  # uniform, both ends
        small = {amount(v) for v in drawn(kind, 500, side=64) if v.suppress}
        assert small <= {2, 3}
    sigma = np.array([amount(v) for v in drawn("gaussian") if v.suppress])
    assert 10 <= sigma.min() ** 2 < 10.1 < 19.9 < sigma.max() ** 2 <= 20
    assert np.std(sigma**2) == pytest.approx(10 / np.sqrt(12), rel=0.05)
    blur = np.array([v.blur for v in drawn("gaussian") if v.blur])
    assert 0.1 <= blur.min() < 0.15
    assert 1.95 < blur.max() <= 2.0


@pytest.mark.parametrize("kind", filters())
def test_the_whole_image_is_filtered_before_the_crop(kind: str) -> None:
    image = photo(60, 80)
    params = next(v for v in drawn(kind, 20, side=60) if v.suppress)
    params = replace(params, crop=replace(params.crop, top=3, left=5, height=50, width=50))
    assert params.suppress is not None
    view = apply(image, params, 32)
    expected = apply(suppressed(image, params.suppress), replace(params, suppress=None), 32)
    np.testing.assert_array_equal(view, expected)
    np.testing.assert_array_equal(view, apply(image, params, 32))  # nothing is drawn when it is applied
    assert np.any(view != apply(image, replace(params, suppress=None), 32))
    assert ViewParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params


def test_everything_else_is_drawn_as_without_it() -> None:
    plain, recipe = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(100):
        one = MOCO.sample(plain, 90, 70)
        other = replace(MOCO, suppress="robust", suppress_p=0.5).sample(recipe, 90, 70)
        assert replace(other, suppress=None, blur=one.blur) == one
    assert plain.bit_generator.state == recipe.bit_generator.state


def test_it_composes_with_every_method(folder: Path) -> None:
    data = open_data(str(folder))
    scenes = open_data("shapes:scenes?n=8&size=32")
    for name, kind in methods().items():
        if kind.no_suppress:
            with pytest.raises(UserError, match="--suppress has no meaning"):
                resolve({"method": name, "suppress": "anisotropic"})
            continue
        if name == "tune":  # one of its views stays as it is: tests/methods/test_tune.py
            continue
        options: dict[str, Any] = {"method": name, "size": 32, "suppress": "anisotropic"}
        options |= {"leave_out": ["color"]} if kind.leaves_out else {}
        for view in build_views(resolve(options), scenes if name == "hcl" else data).positives:
            recipe = view.recipe
            assert (recipe.suppress, recipe.suppress_p, recipe.blur_p) == ("anisotropic", 0.5, 0.5)
    own = resolve({"size": 32, "suppress": "robust", "views": {"blur_p": 0.1}})
    assert {v.recipe.blur_p for v in build_views(own, data).positives} == {0.1}
    assert filters() == ("anisotropic", "bilateral", "cartoon", "gaussian", "robust")
    with pytest.raises(UserError, match="no filter 'sharpen'"):
        resolve({"suppress": "sharpen"})
    with pytest.raises(UserError, match=r"no filter 'patch'.*there are: anisotropic, bilateral"):
        resolve({"suppress": "patch"})


OWN = '''
from dataclasses import dataclass
import numpy as np
from cuewise.cues.cue import Cue
from cuewise.views import Negative


@dataclass(frozen=True)
class Darker(Cue):
    """Half as bright."""

    name = "darker"
    summary = "half as bright"
    suppresses = True

    def draw(self, rng, height, width):
        return {"by": float(rng.uniform(0.4, 0.6))}

    def render(self, image, drawn):
        return (image * drawn["by"]).astype(np.uint8)


@dataclass(frozen=True)
class Mirrored(Negative):
    """Upside down."""

    name = "upside-down"
    summary = "the view upside down"

    def render(self, origin, drawn, number):
        return np.ascontiguousarray(origin.view[::-1])
'''


def test_a_filter_and_a_negative_from_outside_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file each in a folder of the user's own: trained with by name, seen in the views, refused where it has no meaning."""
    (tmp_path / "own_cues.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = resolve(
        {"size": 32, "suppress": "own_cues:Darker", "negatives": ["own_cues:Mirrored"], "alpha": [1.0]}
    )
    views = build_views(config, open_data(str(folder)))
    assert views.roles == ("query", "key", "upside-down:query")
    recipe = replace(views.positives[0].recipe, suppress_p=1.0)
    params = recipe.sample(np.random.default_rng(0), 60, 60)
    image = photo(60, 60)
    assert apply(image, params, 32).mean() < 0.7 * apply(image, replace(params, suppress=None), 32).mean()
    shown = views(Sample(image), np.random.default_rng(1)).views
    np.testing.assert_array_equal(shown["upside-down:query"][0], shown["query"][::-1])
    small: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 8, "steps": 2}
    own = {"suppress": "own_cues:Darker", "negatives": ["own_cues:Mirrored"]}
    pretrain(str(folder), out=str(tmp_path / "run"), set=["moco.queue=32"], workers="0", **small, **own)
    assert json.loads((tmp_path / "run" / "encoder.json").read_text())["cues"]["negatives"] == [
        "own_cues:Mirrored"
    ]
    with pytest.raises(UserError, match="has no meaning for supervised"):
        resolve({"method": "supervised", "negatives": ["own_cues:Mirrored"]})


@pytest.mark.slow
def test_a_run_says_what_it_was_trained_with(folder: Path, tmp_path: Path) -> None:
    small: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 8, "steps": 1}
    out, settings = tmp_path / "run", ["moco.queue=32"]
    pretrain(
        str(folder), out=str(out), suppress="robust", negatives=["patch"], set=settings, workers="0", **small
    )
    assert json.loads((out / "encoder.json").read_text())["cues"]["suppress"] == "robust"


def policy(**settings: Any) -> Any:
    """Views of MoCo under suppress.*, on images of 64 pixels."""
    config = resolve({"size": 32, "suppress": {"name": "anisotropic", **settings}})
    return build_views(config, open_data("shapes?n=8&size=64"))


def positives(views: Any, n: int = 1500) -> list[tuple[ViewParams, ViewParams]]:
    rng = np.random.default_rng(0)
    found = (views.sample(rng, 64, 64).positives for _ in range(n))
    return [(p["query"], p["key"]) for p in found]


def test_pairing_by_image_filters_all_views_together_or_none() -> None:
    drawn = positives(policy(pairing="image"))
    assert all(q.suppress == k.suppress for q, k in drawn)
    for view in (0, 1):  # each view by itself keeps the published shares
        views = [d[view] for d in drawn]
        assert np.mean([v.suppress is not None for v in views]) == pytest.approx(0.5, abs=0.04)
        assert np.mean([v.blur is not None for v in views]) == pytest.approx(0.25, abs=0.04)
        assert not any(v.blur is not None and v.suppress is not None for v in views)
    one = [(q.suppress is None) == (k.suppress is None) for q, k in positives(policy())]
    assert np.mean(one) == pytest.approx(0.5, abs=0.04)  # by view they agree by chance alone


def test_share_and_steps() -> None:
    drawn = positives(policy(share=0.2, steps="10:20", kappa=30))
    views = [v for pair in drawn for v in pair]
    assert np.mean([v.suppress is not None for v in views]) == pytest.approx(0.2, abs=0.03)
    assert np.mean([v.blur is not None for v in views]) == pytest.approx(0.4, abs=0.03)
    filtered = [v for v in views if v.suppress is not None]
    assert {amount(v) for v in filtered} == set(range(10, 21))  # as given, not scaled to the image
    assert {v.suppress.options for v in filtered if v.suppress} == {(("steps", (10, 20)), ("kappa", 30.0))}
    image, params = photo(64, 64), filtered[0]
    assert params.suppress is not None
    expected = perona_malik(image, steps=amount(params), kappa=30)
    np.testing.assert_array_equal(suppressed(image, params.suppress), expected)
    assert ViewParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params
    every = [v for pair in positives(policy(share=1.0), 50) for v in pair]
    assert all(v.suppress is not None for v in every)


def test_settings_that_have_no_meaning_are_refused() -> None:
    def asked(**settings: Any) -> None:
        resolve({"suppress": {"name": "anisotropic", **settings}})

    for settings, said in (
        ({"pairing": "tile"}, "view or image"),
        ({"share": 0}, r"suppress\.share 0"),
        ({"steps": "20:10"}, "the lower end comes first"),
        ({"step": 3}, r"did you mean suppress\.steps\?"),
        ({"sigma": 3}, "no setting suppress.sigma of anisotropic"),
        ({"kappa": "much"}, "must be a number"),
        ({"gamma": 3.0}, "oscillates"),
        ({"copies": ["x"], "steps": 3}, r"no meaning with suppress\.copies"),
    ):
        with pytest.raises(UserError, match=said):
            asked(**settings)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="which is not given: add --suppress"):
        resolve({"suppress": {"share": 0.5}})


def test_ranges_are_no_minutes_and_seconds(tmp_path: Path) -> None:
    """YAML 1.1 reads 10:20 as 620."""
    file = tmp_path / "c.yaml"
    file.write_text("suppress: {name: robust, steps: 10:20}\nsize: 0x20\nseed: 010\n")
    read = read_yaml(file)
    assert (read["size"], read["seed"]) == (32, 8)
    for layer in (read, dotted(["suppress.name=robust", "suppress.steps=10:20"])):
        found = resolve(layer).suppress
        assert found is not None
        assert found["steps"] == [10, 20]


def test_copies_made_beforehand_are_found_by_name(folder: Path, tmp_path: Path) -> None:
    places = [str(tmp_path / f"made{n}") for n in (4, 9)]
    for place, steps in zip(places, (4, 9)):
        make("anisotropic", str(folder), place, set=[f"steps={steps}"])
    data = open_data(str(folder))
    config = resolve({"size": 32, "suppress": {"name": "anisotropic", "copies": places}})
    views, numbers = build_views(config, data), set()
    for i in range(len(data)):
        image = data.image(i)
        drawn = views.sample(np.random.default_rng(i), *image.shape[:2])
        shown = views.render(data.sample(i), drawn).views["query"]
        params = drawn.positives["query"]
        source = image
        if params.suppress is not None:
            number = dict(params.suppress.drawn)["copy"]
            numbers.add(number)
            source = perona_malik(image, steps=(4, 9)[number])
        np.testing.assert_array_equal(shown, apply(source, replace(params, suppress=None), 32))
    assert numbers == {0, 1}
    views.warm_up()
    with pytest.raises(UserError, match=r"made by `cuewise make anisotropic`, and --suppress is robust"):
        build_views(resolve({"suppress": {"name": "robust", "copies": places}}), data)
    with pytest.raises(
        UserError, match=r"has no anisotropic of .*finish it with `cuewise make anisotropic DATA"
    ):
        build_views(config, open_data("shapes?n=8&size=64"))


@pytest.mark.slow
def test_a_budget_of_steps_is_the_same_for_sets_of_any_size(folder: Path, tmp_path: Path) -> None:
    """Original ∪ filtered has twice the images: with loop.budget both arms take the same steps on the same schedule."""
    made = str(tmp_path / "made")
    make("anisotropic", str(folder), made)
    arms = {"original": [str(folder)], "both": [str(folder), made], "filtered": [made]}
    rates = {}
    for name, sets in arms.items():
        out = tmp_path / name
        small: dict[str, Any] = {
            "model": "cuewise/resnet-tiny?width=8",
            "size": 16,
            "batch_size": 16,
            "workers": "0",
        }
        settings = ["loop.budget=8", "loop.log_every=1"]
        pretrain(*sets, out=str(out), method="supervised", set=settings, **small)
        rows = read_metrics(out / "metrics.jsonl")
        assert rows[-1]["step"] == 8
        rates[name] = [r["lr"] for r in rows if "lr" in r]
        written = read_yaml(out / "config.yaml")
        assert written["epochs"] == (2 if name == "both" else 3)  # 6 and 3 steps in an epoch
        assert len(open_data(sets).classes) == 3  # joined by name
    assert rates["original"] == rates["both"] == rates["filtered"]
    with pytest.raises(UserError, match="exclude each other"):
        pretrain(str(folder), out=str(tmp_path / "x"), epochs=3, set=["loop.budget=8"])
