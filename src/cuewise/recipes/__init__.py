"""Settings of the papers as short overrides, each with what to expect; `cuewise pretrain DATA --config NAME --out RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from cuewise.config import read_yaml
from cuewise.errors import UserError


@dataclass(frozen=True)
class Recipe:
    """A named set of overrides; `summary` tells data, cost and the published number, `images` the DATA to give."""

    name: str
    summary: str
    images: str
    settings: dict[str, Any]


def recipes() -> dict[str, Recipe]:
    """All recipes by name: the YAML files in this folder."""
    found = {}
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".yaml"):
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            name = file.name.removesuffix(".yaml")
            found[name] = Recipe(name, content.pop("summary"), content.pop("images"), content)
    return dict(sorted(found.items()))


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a YAML file, or of a recipe by its name."""
    if Path(name).is_file() or name.endswith((".yaml", ".yml")):
        return read_yaml(Path(name))
    known = recipes()
    if name not in known:
        raise UserError(f"--config {name}: neither a file nor a recipe; recipes: {', '.join(known)}")
    return known[name].settings
