"""Layers of settings from the shell, Python and YAML: read, merged and compared."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cuewise.errors import UserError

# What may differ between a run and its --resume: none of it changes the numbers.
FREE_TO_CHANGE = (
    "workers",
    "devices",
    "num_nodes",
    "steps",
    "val",
    "watch",
    "watch_every",
    "max_drop",
    "stop_on_drop",
    "log",
)


@cache
def _loader() -> Any:
    """YAML's safe loader without its minutes and seconds: 10:20 is a range, and YAML 1.1 would read 620."""
    import yaml

    class Plain(yaml.SafeLoader):
        pass

    Plain.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:int"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    whole = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
    Plain.add_implicit_resolver("tag:yaml.org,2002:int", whole, list("-+0123456789"))
    return Plain


def parse_yaml(text: str) -> Any:
    """A value as YAML writes it."""
    import yaml

    return yaml.load(text, Loader=_loader())  # a safe loader


def read_yaml(file: Path) -> dict[str, Any]:
    """A mapping from a YAML file, or an error that names the line."""
    import yaml

    try:
        content = parse_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the config {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} must hold a mapping such as `epochs: 100`, not {type(content).__name__}")
    return content


def dotted(pairs: list[str]) -> dict[str, Any]:
    """["optim.lr=0.1", "moco.queue=512"] → nested dicts, values read as YAML."""
    import yaml

    tree: dict[str, Any] = {}
    for pair in pairs:
        key, eq, value = pair.partition("=")
        if not eq or not key:
            raise UserError(f"--set {pair!r}: write dotted.key=value, e.g. --set optim.lr=0.1")
        *parents, leaf = key.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"--set {pair!r}: {parent} is already set to a value")
        try:
            place[leaf] = parse_yaml(value)
        except yaml.YAMLError:
            raise UserError(
                f"--set {pair!r}: cannot read the value; put text with special characters in quotes"
            ) from None
    return tree


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win, key by key; None leaves what was there."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), dict):
                out[key] = merge(out[key], value)
            elif isinstance(value, Mapping):
                out[key] = merge(value)
            elif value is not None or key not in out:
                out[key] = value
    return out


def difference(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """Keys whose values differ, as "optim.lr: 0.03 → 0.1"."""
    out = []
    for key in [*old, *(k for k in new if k not in old)]:
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += difference(a, b, f"{where}{key}.")
        elif a != b and not (where == "" and key in FREE_TO_CHANGE):
            out.append(f"{where}{key}: {a} → {b}")
    return out


CODE = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")  # package.module:Name
NO_CODE = ("shapes:", "hf:", "torchvision:")  # DATA that looks like it


def named_code(settings: Mapping[str, Any]) -> dict[str, str]:
    """Option → package.module:Name, for all settings that name code to be imported."""
    found = {}
    for option in ("method", "model", "negatives", "suppress", "leave_out", "data", "val"):
        values = settings.get(option) or []
        if isinstance(values, Mapping):  # --suppress with its settings
            values = values.get("name") or []
        for value in [values] if isinstance(values, str) else values:
            spec = str(value).partition("?")[0]
            if CODE.fullmatch(spec) and not spec.startswith(NO_CODE):
                found[option] = spec
    return found


def refuse_code(
    settings: Mapping[str, Any], where: str, *typed: Mapping[str, Any], options: bool = True
) -> None:
    """Code that a file names is imported only if the user typed the same name, or has imported its module already.

    options: whether the command has options that such a name can be typed for
    """
    allowed = {spec for layer in typed for spec in named_code(layer).values()}
    for option, spec in named_code(settings).items():
        if spec not in allowed and spec.partition(":")[0] not in sys.modules:
            flag = option if option == "data" else f"--{option.replace('_', '-')}"
            module = spec.partition(":")[0]
            install = f"make it an entry point (docs/extend.md), or import {module} first in Python"
            advice = f"give {flag} {spec} yourself" if options else install
            raise UserError(f"{where} names code to import, {spec}; if you trust it, {advice}")
