"""Settings of the papers, each with what to expect; `cuewise pretrain DATA --config NAME --out RUN`.

A file NAME.yaml has a `summary` (data, cost and the published number), the `images` to give as DATA, and settings; with
`base: OTHER` only what differs from another recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from cuewise.config import merge, read_yaml
from cuewise.errors import UserError, nearest


@dataclass(frozen=True)
class PaperRecipe:
    """A named set of settings; `summary` gives data, cost and the published number, `images` the DATA to give."""

    name: str
    summary: str
    images: str
    settings: dict[str, Any]


def recipes() -> dict[str, PaperRecipe]:
    """All recipes by name: the YAML files in this folder, each on top of its base."""
    return {name: recipe_from(name, _content()) for name in sorted(_content())}


@cache
def _content() -> dict[str, dict[str, Any]]:
    """What the files say, read once; by the parser in C, where PyYAML has it."""
    files = [f for f in resources.files(__package__).iterdir() if f.name.endswith(".yaml")]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    texts = {f.name.removesuffix(".yaml"): f.read_text(encoding="utf-8") for f in files}
    return {name: yaml.load(text, Loader=loader) for name, text in texts.items()}  # a safe loader


def recipe_from(name: str, content: dict[str, dict[str, Any]]) -> PaperRecipe:
    """One recipe of several files; a base may have a base."""
    own = merge(content[name])  # a copy: what is read stays unchanged
    summary, below = own.pop("summary"), own.pop("base", None)
    if below is None:
        return PaperRecipe(name, summary, own.pop("images"), own)
    base = recipe_from(below, content)
    images = own.pop("images", base.images)
    return PaperRecipe(name, summary, images, merge(base.settings, own))


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a YAML file, or of a recipe by its name."""
    if Path(name).is_file() or name.endswith((".yaml", ".yml")):
        return read_yaml(Path(name))
    known = recipes()
    if name not in known:
        hint = f"did you mean {near}? " if (near := nearest(name, known)) else ""
        raise UserError(f"--config {name}: neither a file nor a recipe; {hint}recipes: {', '.join(known)}")
    return known[name].settings
