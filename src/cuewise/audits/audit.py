"""What an audit is: a question put to a model, answered in scores, tables, figures and pictures."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.data import Dataset
from cuewise.encoders import Encoder
from cuewise.encoders.embed import Embedded, embed_dataset
from cuewise.errors import UserError
from cuewise.probes import LinearProbe, Probe
from cuewise.scores import Score


@dataclass
class Finding:
    """What one audit found; tables, figures and galleries are in the form of audit.json."""

    scores: list[Score] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    galleries: dict[str, Any] = field(default_factory=dict)


@dataclass
class Subject:
    """A model under audit with the data it is asked about; features and probe are made once for all audits."""

    name: str
    encoder: Encoder
    train: Dataset
    test: list[tuple[str, Dataset]]
    conflict: tuple[str, Dataset] | None
    folder: Path  # of the audit; pictures go below it
    run: Path | None = None  # the run folder, where the model is one
    seed: int = 0
    embedded: bool = False  # the data are the embedded shapes

    @cached_property
    def train_features(self) -> Embedded:
        return embed_dataset(self.encoder, self.train, label=f"{self.name}: features of the training set")

    @cached_property
    def probe(self) -> Probe:
        """The linear probe that stands in for a classifier."""
        f = self.train_features
        return LinearProbe(seed=self.seed).fit(f.features, f.labels)

    def features(self, data: Dataset, what: str) -> Embedded:
        return embed_dataset(self.encoder, data, label=f"{self.name}: {what}")

    def picture(self, image: NDArray[np.uint8], name: str) -> str:
        """Save a picture below the audit's folder; returns its relative path."""
        where = self.folder / "pictures" / f"{name}.png"
        where.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(where)
        return where.relative_to(self.folder).as_posix()


@dataclass(frozen=True)
class Audit:
    """A registered audit."""

    name: str
    summary: str
    ask: Callable[[Subject], Finding]


_AUDITS: dict[str, Audit] = {}


def audit(name: str, summary: str) -> Callable[[Callable[[Subject], Finding]], Callable[[Subject], Finding]]:
    """Decorator: list the function as audit `name`."""

    def add(ask: Callable[[Subject], Finding]) -> Callable[[Subject], Finding]:
        _AUDITS[name] = Audit(name, summary, ask)
        return ask

    return add


def audits() -> dict[str, Audit]:
    """All audits by name; a file in this room is listed by being there."""
    package = importlib.import_module(__package__ or "cuewise.audits")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_AUDITS.items()))


def choose(names: list[str]) -> list[Audit]:
    """The named audits, or all."""
    found = audits()
    for name in names:
        if name not in found:
            raise UserError(f"no audit {name!r}; there are: {', '.join(found)}")
    return [found[name] for name in names or found]
