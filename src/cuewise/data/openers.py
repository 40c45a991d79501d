"""Image sets from outside: `package.module:Name?a=1&b=2` as DATA, or `NAME?a=1` for an entry point of an installed package.

    @source("noise", "images of uniform noise")
    def noise(n: int = 100, seed: int = 0) -> Source: …

`package.module:noise?n=50` then opens noise(n=50). A class that is a Source itself will do as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from cuewise.data.source import Source
from cuewise.errors import UserError, unknown
from cuewise.options import convert
from cuewise.registry import TYPED, Registry, import_typed, instances_of, outside


@dataclass(frozen=True)
class Opener:
    """A registered way to open an image set: a function of options that returns a Source."""

    name: str
    summary: str
    open: Callable[..., Source]

    def __call__(self, **options: Any) -> Source:
        return self.open(**options)


def source(name: str, summary: str) -> Callable[[Callable[..., Source]], Opener]:
    """Decorator: the function becomes the source `name`."""
    return lambda function: Opener(name, summary, function)


SOURCES = Registry[Opener]("source", "cuewise.data", instances_of(Opener))


def is_outside(name: str) -> bool:
    """Whether `package.module:Name` or an entry point is named."""
    typed = TYPED.fullmatch(name) and not name.startswith(("hf:", "torchvision:", "shapes:"))
    return bool(typed) or name in outside(SOURCES.plural)


def open_outside(spec: str) -> Source | None:
    """The set that a source from outside opens; None where the spec names none."""
    name, _, text = spec.partition("?")
    if not is_outside(name):
        return None
    found: Any = import_typed(name, "source") if ":" in name else SOURCES.get(name)
    function = found.open if isinstance(found, Opener) else found
    if not callable(function):
        raise UserError(f"{name} cannot open an image set: it must be a Source, or a function under @source")
    opened: Source = function(**_options(function, text, spec))
    lacking = [
        part for part in ("image", "name", "labels", "classes", "fingerprint") if not hasattr(opened, part)
    ]
    if lacking:
        raise UserError(
            f"{name} gives {type(opened).__name__}, which lacks {', '.join(lacking)}: see cuewise.data.Source"
        )
    return opened


def _options(function: Callable[..., Any], text: str, spec: str) -> dict[str, Any]:
    """ "n=50&seed=1" as the types that the function declares."""
    known = inspect.signature(function).parameters
    hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    given = {}
    for part in text.split("&") if text else []:
        key, equals, value = part.partition("=")
        if not equals or key not in known:
            raise unknown(f"{spec}: no option", key, known)
        given[key] = convert(hints.get(key, str), value, f"{spec}: {key}")
    return given
