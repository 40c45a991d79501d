"""What an audit is: a question put to a model, answered in scores, tables, figures and pictures."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.audits.answerer import Answerer, Ids, Unasked
from cuewise.audits.change import CLEAN, Change
from cuewise.audits.engine import Engine, Seen, Viewer, Work
from cuewise.audits.head import ClassMap, Head, map_for, outputs
from cuewise.audits.keys import data_key
from cuewise.data import Dataset
from cuewise.encoders import Encoder
from cuewise.encoders.cached import weights_hash
from cuewise.encoders.embed import Embedded
from cuewise.errors import UserError
from cuewise.probes import LinearProbe, Probe
from cuewise.scores import Score

Named = tuple[str, Dataset]


@dataclass
class Finding:
    """What one audit found; tables, figures and galleries are in the form of audit.json."""

    scores: list[Score] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    galleries: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What the user may choose about the questions."""

    limit: int = 200  # images of which changed copies are made; 0: all
    class_map: ClassMap | None = None
    human: Path | None = None  # decisions of people on the cue-conflict images
    reference_errors: dict[str, float] | None = None  # corruption → mean error of the reference model
    superclasses: dict[str, str] | None = None  # class → superclass
    masks: str | None = None  # DATA: where the object is in each test image


@dataclass(frozen=True)
class Cut:
    """Which images of a whole test set are the base set."""

    whole: Dataset
    rows: Ids

    @property
    def rest(self) -> Ids:
        return np.setdiff1d(np.arange(len(self.whole)), self.rows)


@dataclass
class Subject:
    """A model under audit with the data it is asked about; features and probe are made once for all audits.

    train  what the probe is fitted on. For a model that answers with its own classifier: the first labelled test set,
           numbered by the classes of that classifier. `classes` of `train` are those of the answers in either case.
    base   the plain test set of which changed copies are made, `cut` down to the limit
    given  test sets that keep one cue, by audit: {"sketch": [("edges", …)], …}
    """

    name: str
    encoder: Encoder
    train: Dataset
    test: list[Named]
    conflict: Named | None
    folder: Path  # of the audit; pictures go below it
    run: Path | None = None  # the run folder, where the model is one
    seed: int = 0
    embedded: bool = False  # the data are the embedded shapes
    base: Named | None = None
    cut: Cut | None = None
    given: dict[str, list[Named]] = field(default_factory=dict)
    answers_by: str = "probe"  # probe, head, or nothing where there are no labels to fit a probe on
    settings: Settings = field(default_factory=Settings)
    engine: Engine = field(default_factory=Engine)
    seen: dict[str, Seen] = field(default_factory=dict)  # by key of the data

    @cached_property
    def train_features(self) -> Embedded:
        return self.features(self.train, "features of the training set")

    @cached_property
    def probe(self) -> Probe:
        """What answers: the model's own classifier, or the linear probe that stands in for one."""
        if self.answers_by == "head":
            return self._head(self.train.classes)[0]
        if self.answers_by == "nothing" or self.train.labels is None:
            raise Unasked("no labelled images to fit a probe on: give --train with one folder a class")
        f = self.train_features
        return LinearProbe(seed=self.seed).fit(f.features, f.labels)

    def answerer(self, data: Dataset) -> Answerer:
        """Who answers on this set; a classifier's outputs are gathered into the classes of the set."""
        if self.answers_by != "head":
            return Answerer(self.probe, self.train.classes)
        probe, classes = self._head(data.classes)
        return Answerer(probe, classes)

    def classes_for(self, data: Dataset) -> tuple[str, ...]:
        """The classes that answers on this set can name."""
        return self._head(data.classes)[1] if self.answers_by == "head" else self.train.classes

    def _head(self, classes: Sequence[str]) -> tuple[Head, tuple[str, ...]]:
        assert self.encoder.head is not None
        found = map_for(classes, outputs(self.encoder), self.settings.class_map)
        if found is None:
            few = ", ".join(list(classes)[:4])
            raise Unasked(
                f"which outputs of the classifier stand for {few} … is not known: give --class-map or --train"
            )
        head = Head(self.encoder.head, *found)
        return head, tuple(head.classes)

    def features(self, data: Dataset, what: str) -> Embedded:
        """Features of every readable image."""
        return self._seen(data, what, (CLEAN,)).embedded(data)

    def said(self, change: Change) -> tuple[Ids, Ids]:
        """Index of each readable image of `base`, and what was said about its changed copy."""
        if self.base is None:
            raise Unasked("no plain labelled test set to make changed copies of: give --test")
        name, data = self.base
        seen = self._seen(data, name, (change,))
        if change == CLEAN:
            return seen.index, self.answerer(data).say(seen.features)
        return seen.index, seen.said[change]

    def viewer(self, answerer: Answerer | None) -> Viewer:
        """This model for the engine."""
        how = (
            ""
            if answerer is None
            else self.key + answerer.probe.protocol + repr(getattr(answerer.probe, "classes", ""))
        )
        return Viewer(self.encoder, answerer, self.weights + how)

    @cached_property
    def weights(self) -> str:
        return weights_hash(self.encoder)

    @cached_property
    def key(self) -> str:
        """Of all that answers follow from, the test images aside."""
        return f"{self.weights} {self.answers_by} {data_key(self.train)} {self.seed} {self.settings}"

    def _seen(self, data: Dataset, what: str, changes: tuple[Change, ...]) -> Seen:
        key = data_key(data)
        have = self.seen.get(key)
        missing = tuple(
            c
            for c in changes
            if have is None or (c not in have.said and (c != CLEAN or not have.features.size))
        )
        if missing or have is None:
            asked = any(c != CLEAN for c in missing)
            viewer = self.viewer(self.answerer(data) if asked else None)
            fresh = self.engine.run(Work(f"{self.name}: {what}", data, [viewer], missing, self.seed))[0]
            have = self.remember(key, fresh)
        return have

    def remember(self, key: str, fresh: Seen) -> Seen:
        """Add what was seen to what is known of that set."""
        have = self.seen.get(key)
        if have is not None:
            features = fresh.features if fresh.features.size else have.features
            fresh = Seen(fresh.index, features, {**have.said, **fresh.said}, fresh.skipped)
        self.seen[key] = fresh
        return fresh

    def picture(self, image: NDArray[np.uint8], name: str) -> str:
        """Save a picture below the audit's folder; returns its relative path."""
        where = self.folder / "pictures" / f"{name}.png"
        where.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(where)
        return where.relative_to(self.folder).as_posix()


@dataclass(frozen=True)
class Needs:
    """What an audit will look at: whole sets as they are, and changed copies of the base set."""

    sets: Sequence[Named] = ()
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Audit:
    """A registered audit."""

    name: str
    summary: str
    ask: Callable[[Subject], Finding]
    needs: Callable[[Subject], Needs]


_AUDITS: dict[str, Audit] = {}
Ask = Callable[[Subject], Finding]


def audit(name: str, summary: str, needs: Callable[[Subject], Needs] | None = None) -> Callable[[Ask], Ask]:
    """Decorator: list the function as audit `name`.

    needs: what it will ask for, so that all audits and models share one pass; without it, passes are made when asked.
    """

    def add(ask: Ask) -> Ask:
        _AUDITS[name] = Audit(name, summary, ask, needs or (lambda subject: Needs()))
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
