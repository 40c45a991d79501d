"""--grid: several settings of a maker from a YAML list, one folder each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from cuewise.errors import UserError
from cuewise.makers.names import safe_stem


def read_grid(file: str | os.PathLike[str], kind: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(folder, kind, settings) for each entry: a mapping of settings, with `kind` and `name` where they differ."""
    try:
        entries = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"the grid {file} cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise UserError(
            f"the grid {file} must be a list of settings, such as\n- {{steps: 20}}\n- {{steps: 50}}"
        )
    found = []
    for entry in entries:
        settings = {str(key): value for key, value in entry.items()}
        own = str(settings.pop("kind", kind))
        words = ",".join(f"{key}={value}" for key, value in settings.items() if key != "name")
        name = str(settings.pop("name", f"{own}-{words}" if words else own))
        found.append((safe_stem(name.replace("/", "_")), own, settings))
    names = [name.casefold() for name, _, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"the grid {file} has {name!r} twice; give each entry a name of its own")
    return found
