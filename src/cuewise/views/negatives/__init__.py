"""Kinds of negatives: a new one is one file in this package (or your own, as package.module:Name)."""

from __future__ import annotations

from typing import Any

from cuewise.errors import UserError
from cuewise.options import convert, options_of
from cuewise.registry import Registry, subclasses_of
from cuewise.views.negatives.negative import Negative, Origin, negative_role
from cuewise.views.negatives.patch import PatchNegative
from cuewise.views.negatives.texture import TextureNegative

NEGATIVES = Registry[type[Negative]]("negative", "cuewise.views.negatives", subclasses_of(Negative))

__all__ = [
    "NEGATIVES",
    "Negative",
    "Origin",
    "PatchNegative",
    "TextureNegative",
    "negative_kind",
    "negative_role",
    "negative_settings",
]


def negative_kind(spec: str) -> type[Negative]:
    """The kind that "NAME", "package.module:Name" or either with "?option=value&…" names."""
    return NEGATIVES.get(spec.partition("?")[0])


def negative_settings(spec: str) -> dict[str, Any]:
    """The options of its own that follow the question mark, converted."""
    name, mark, rest = spec.partition("?")
    given = {}
    for part in rest.split("&") if mark else []:
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"--negatives {spec}: {part!r} is not an option; write {name}?option=value")
        given[key] = value
    known = options_of(NEGATIVES.get(name))
    if unknown := given.keys() - known.keys():
        has = f"it has: {', '.join(known)}" if known else "it has none"
        raise UserError(f"--negatives {spec}: no option {min(unknown)!r} of {name}; {has}")
    return {key: convert(known[key].type, value, f"{name}?{key}") for key, value in given.items()}
