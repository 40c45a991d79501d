"""Every recipe of the papers builds and runs two steps on tiny data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cuewise import UserError, pretrain
from cuewise.recipes import recipes


@pytest.mark.parametrize("name", sorted(recipes()))
def test_recipe_runs(name: str, folder: Path, tmp_path: Path) -> None:
    recipe = recipes()[name]
    assert recipe.summary
    small = {"model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 8, "patch_size": "3:10"}
    if "negatives" not in recipe.settings:
        small.pop("patch_size")
    pretrain(str(folder), out=str(tmp_path / "run"), config=name, steps=2, workers="0", **small)  # type: ignore[arg-type]
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["epochs"] == recipe.settings["epochs"]
    assert written["optim"]["lr"] == recipe.settings["optim"]["lr"]


def test_unknown_recipe(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a file nor a recipe; recipes: .*looc-color-imagenet100"):
        pretrain(str(folder), out=str(tmp_path / "run"), config="moco-imagenet99")
