"""Which cue operators there are: a file in this room registers itself by being there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.errors import UserError

Image = NDArray[np.uint8]  # H×W×3, RGB
Operator = Callable[..., Image]  # (image, rng, **settings) -> image of the same kind


@dataclass(frozen=True)
class Cue:
    """A named image → image operator; `settings` are its keyword arguments with their defaults."""

    name: str
    summary: str
    operator: Operator
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, image: Image, rng: np.random.Generator, **settings: Any) -> Image:
        unknown = set(settings) - set(self.settings)
        if unknown:
            known = ", ".join(self.settings) or "none"
            raise UserError(f"{self.name}: no setting {sorted(unknown)[0]!r}; it has: {known}")
        return self.operator(image, rng, **{**self.settings, **settings})


_CUES: dict[str, Cue] = {}


def register(name: str, summary: str, **settings: Any) -> Callable[[Operator], Operator]:
    """Decorator: list the function as cue `name`; keyword arguments are its settings and defaults."""

    def add(operator: Operator) -> Operator:
        _CUES[name] = Cue(name, summary, operator, settings)
        return operator

    return add


def cues() -> dict[str, Cue]:
    """All registered cues by name, in alphabetical order."""
    package = importlib.import_module(__package__ or "cuewise.cues")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_CUES.items()))


def cue(name: str) -> Cue:
    """The cue of that name, or an error that lists the names."""
    found = cues()
    if name not in found:
        raise UserError(f"no cue operator {name!r}; there are: {', '.join(found)}")
    return found[name]
