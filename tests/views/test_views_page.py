"""The page about views: its Python runs as written, and its table of recipes is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cuewise.views import RECIPES

pytestmark = pytest.mark.docs

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert names["pixels"].shape == (224, 224, 3)
    assert set(names["shown"]) == {"query", "key", "same colours", "patch:query"}


def test_the_table_of_recipes_is_true() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.*?) \|$", PAGE.split("## Recipes")[1].split("##")[0], re.MULTILINE
    )
    assert [name for name, _ in rows] == list(RECIPES)
    for name, row in rows:
        area, jitter, p, gray, blur, solarize = (cell.strip() for cell in row.split("|"))
        recipe = RECIPES[name]
        assert tuple(map(float, area.split("–"))) == recipe.scale
        if jitter != "–":
            assert tuple(map(float, jitter.split(","))) == recipe.jitter
        for cell, value in (
            (p, recipe.jitter_p),
            (gray, recipe.gray_p),
            (blur, recipe.blur_p),
            (solarize, recipe.solarize_p),
        ):
            assert (0.0 if cell == "–" else float(cell)) == value
