"""The settings of a maker as the user gives them: `key=value` texts or a mapping, checked against its defaults."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml

from cuewise.errors import UserError


def resolve(
    kind: str,
    defaults: Mapping[str, Any],
    given: Mapping[str, Any] | Sequence[str] | None,
    numbers: Collection[str] = (),
) -> dict[str, Any]:
    """Defaults with what was given; an unknown setting is an error that lists the known ones.

    numbers: settings whose default is a word, but which take a number, too.
    """
    pairs = dict(given) if isinstance(given, Mapping) else dict(_pair(kind, text) for text in given or ())
    for key in numbers:
        if str(pairs.get(key, "")).isdigit():
            defaults = {**defaults, key: 0}
    for key in pairs:
        if key not in defaults:
            raise UserError(f"make {kind}: no setting {key!r}; it has: {', '.join(defaults) or 'none'}")
    return {key: _value(kind, key, pairs[key], default) if key in pairs else default
            for key, default in defaults.items()}  # fmt: skip


def _pair(kind: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"make {kind}: --set {text!r}: write key=value")
    return key.strip(), value.strip()


def _value(kind: str, key: str, given: Any, default: Any) -> Any:
    value = _parsed(given) if isinstance(given, str) and not isinstance(default, str) else given
    if isinstance(value, list):
        value = tuple(value)
    wanted: tuple[type, ...] = ()
    if isinstance(default, bool):
        wanted = (bool,)
    elif isinstance(default, int):
        wanted = (int,)
    elif isinstance(default, float):
        wanted = (int, float)
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        word = {bool: "true or false", int: "a whole number"}.get(wanted[0] if len(wanted) == 1 else float)
        raise UserError(f"make {kind}: {key}={given}: must be {word or 'a number'}")
    return str(value) if isinstance(default, str) and not isinstance(value, tuple) else value


def _parsed(text: str) -> Any:
    """A YAML value; '10:20' is a range, which YAML would take for minutes and seconds."""
    span = re.fullmatch(r"(-?\d+):(-?\d+)", text)
    if span:
        return tuple(int(end) for end in span.groups())
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
