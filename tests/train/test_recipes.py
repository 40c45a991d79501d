"""Every recipe of the papers builds and runs two steps on tiny data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from cuewise import UserError, pretrain
from cuewise.catalogue import catalogue
from cuewise.methods import methods
from cuewise.recipes import recipe_from, recipes


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(recipes()))
def test_recipe_runs(name: str, folder: Path, tmp_path: Path) -> None:
    recipe = recipes()[name]
    assert recipe.summary
    small = {"model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 8, "patch_size": "3:10"}
    if methods()[recipe.settings.get("method", "moco")].backbone:
        small["model"] = "cuewise/unet?width=8"
    if "generator" in recipe.settings:
        with pytest.raises(UserError, match="--generator runs/G: there is no such run folder; train one"):
            pretrain(str(folder), out=str(tmp_path / "run"), config=name, workers="0", size=32, batch_size=8)
        return
    if "patch" not in recipe.settings.get("negatives", []):
        small.pop("patch_size")
    pretrain(str(folder), out=str(tmp_path / "run"), config=name, steps=2, workers="0", **small)  # type: ignore[arg-type]
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["epochs"] == recipe.settings["epochs"]
    assert written["optim"]["lr"] == recipe.settings["optim"]["lr"]
    for key in ("negatives", "hard"):  # what a recipe asks for is what is run
        assert written[key] == recipe.settings.get(key, type(written[key])())


@pytest.mark.parametrize("name", [name for name in sorted(recipes()) if name.startswith("ns-")])
def test_recipes_of_the_negatives_study_state_what_to_expect(name: str) -> None:
    recipe = recipes()[name]
    assert re.search(r"\d %|no published number", recipe.summary)
    assert ("-patch" in name) == ("patch" in recipe.settings.get("negatives", []))
    assert ("-texture" in name) == ("texture" in recipe.settings.get("negatives", []))
    assert ("nojitter" in name) == (recipe.settings.get("color_jitter") is False)
    for hard in ("mochi", "ifm", "debiased", "hard"):
        asked = bool(re.search(rf"-{hard}(\d|-)", name))
        assert asked == (recipe.settings.get("hard", {}).get("name") == hard)


@pytest.mark.slow
def test_recipes_state_their_images() -> None:
    wanted = {"imagenet100": "imagenet/train?classes=imagenet100", "imagenet": "imagenet/train"}
    wanted["cifar100"] = "torchvision:CIFAR100:ROOT?split=train"
    wanted["stl10"] = "torchvision:STL10:ROOT?split=train+unlabeled"
    for name, recipe in recipes().items():
        kind = next(word for word in name.split("-") if word in wanted)
        assert recipe.images == wanted[kind]
        assert f"DATA: '{recipe.images}'" in catalogue("recipes")[name]


def test_settings_of_every_recipe() -> None:
    """A change of a base shows in all recipes on top of it; recipes.json has the whole settings of each."""
    written = json.loads((Path(__file__).parent / "recipes.json").read_text())
    assert {n: {"images": r.images, "settings": r.settings} for n, r in recipes().items()} == written


def test_a_base_of_a_base() -> None:
    files = {
        "a": {"summary": "A", "images": "x", "epochs": 2, "moco": {"queue": 8, "momentum": 0.9}},
        "b": {"summary": "B", "base": "a", "moco": {"queue": 16}},
        "c": {"summary": "C", "base": "b", "images": "y", "epochs": 3},
    }
    found = recipe_from("c", files)
    assert (found.summary, found.images) == ("C", "y")
    assert found.settings == {"epochs": 3, "moco": {"queue": 16, "momentum": 0.9}}
    assert files["c"]["base"] == "b"  # what was read is not changed


def test_unknown_recipe(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"nor a recipe; did you mean moco-imagenet\w*\? recipes: .*looc-color-imagenet100"
    ):
        pretrain(str(folder), out=str(tmp_path / "run"), config="moco-imagenet99")
