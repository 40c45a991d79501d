"""A model under audit: the measured model with the image sets that it is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.audits import LIMIT
from cuewise.audits.answerer import Answerer, Ids, Unasked
from cuewise.audits.change import Change
from cuewise.audits.engine import Engine
from cuewise.audits.head import ClassMap, Grouped, Head, groups_for, map_for, output_names
from cuewise.audits.keys import data_key
from cuewise.audits.measured import Measured
from cuewise.audits.zero_shot import PROMPTS, ZeroShot
from cuewise.data import Dataset
from cuewise.data.class_names import alike, listed, same_but_for
from cuewise.data.overlap import Overlap
from cuewise.encoders import Encoder
from cuewise.encoders.embed import Embeddings
from cuewise.encoders.load import outputs_of
from cuewise.probes import Probe

Named = tuple[str, Dataset]


@dataclass(frozen=True)
class AuditSettings:
    """What the user may choose about the questions."""

    limit: int = LIMIT  # images of which changed copies are made; 0: all
    class_map: ClassMap | None = None
    prompts: tuple[str, ...] = ()  # of models that answer by text
    options: Mapping[str, Any] = field(default_factory=dict)  # of single audits, as they declare them


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
    """A measured model with the sets of an audit.

    train  what the probe is fitted on. For a model that answers with its own classifier: the first labelled test set,
           numbered by the classes of that classifier. `classes` of `train` are those of the answers in either case.
    base   the plain test set of which changed copies are made, `cut` down to the limit
    given  test sets that keep one cue, by audit: {"sketch": [("edges", …)], …}
    """

    model: Measured
    train: Dataset
    test: list[Named]
    conflict: Named | None
    folder: Path  # of the audit; pictures go below it
    embedded: bool = False  # the data are the embedded shapes
    base: Named | None = None
    baseless: str = ""  # why there is no base set although there are plain labelled sets
    cut: Cut | None = None
    given: dict[str, list[Named]] = field(default_factory=dict)
    answers_by: str = "probe"  # probe, head, or nothing where there are no labels to fit a probe on
    settings: AuditSettings = field(default_factory=AuditSettings)
    roles: Sequence[tuple[str, str]] = ()  # how each test set was read
    overlaps: Mapping[str, Overlap] = field(default_factory=dict)  # training images in each test set
    spoken: dict[str, ZeroShot] = field(default_factory=dict)  # by classes
    prompted: list[Subject] = field(default_factory=list)  # the same with one prompt each (prompt_spread.py)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def encoder(self) -> Encoder:
        return self.model.encoder

    @property
    def run(self) -> Path | None:
        return self.model.run

    @property
    def seed(self) -> int:
        return self.model.seed

    @property
    def engine(self) -> Engine:
        return self.model.engine

    @property
    def base_set(self) -> Named:
        """The set of which changed copies are made; raises Unasked where there is none."""
        if self.base is None:
            raise Unasked(
                self.baseless or "no plain labelled test set to make changed copies of: give --test"
            )
        return self.base

    @property
    def conflicts(self) -> list[Named]:
        """The set of cue-conflict images as a list; empty where there is none."""
        return [self.conflict] if self.conflict else []

    @property
    def asked(self) -> list[Named]:
        """All sets that answers are asked of."""
        return [*self.conflicts, *self.test, *self.given.get("corrupted", [])]

    @property
    def by_text(self) -> bool:
        """Whether texts answer: the model has no classifier of its own."""
        return self.encoder.head is None and self.encoder.text is not None

    @property
    def train_features(self) -> Embeddings:
        return self.model.features(self.train, "features of the training set")

    @property
    def probe(self) -> Probe:
        """What answers: the model's own classifier, or the linear probe that stands in for one."""
        if self.answers_by == "head":
            return self._head(self.train.classes)[0]
        if self.answers_by == "nothing":
            raise Unasked("no labelled images to fit a probe on: give --train with one folder per class")
        return self.model.probe(self.train)

    def answerer(self, data: Dataset) -> Answerer:
        """What answers on this set; a classifier's outputs are gathered into the classes of the set."""
        if self.answers_by != "head":
            return self.gathered(self.probe, data)
        probe, classes = self._head(data.classes)
        return Answerer(probe, classes, self.key)

    def gathered(self, probe: Probe, data: Dataset) -> Answerer:
        """A probe on the training classes, as it answers on a set; training classes are gathered into other classes where
        --class-map or WordNet ids say so."""
        found = groups_for(data.classes, self.train.classes, self.settings.class_map)
        if found is None:
            return Answerer(probe, self.train.classes, self.key)
        return Answerer(Grouped(probe, *found), tuple(found[0]), self.key)

    def classes_for(self, data: Dataset) -> tuple[str, ...]:
        """The classes that answers on this set can name."""
        if self.answers_by == "head":
            return self._head(data.classes)[1]
        found = groups_for(data.classes, self.train.classes, self.settings.class_map)
        return self.train.classes if found is None else tuple(found[0])

    def _head(self, classes: Sequence[str]) -> tuple[Head, tuple[str, ...]]:
        if self.by_text:
            assert self.encoder.text is not None
            key = "\0".join(classes)
            if key not in self.spoken:
                self.spoken[key] = ZeroShot(self.encoder.text, classes, self.settings.prompts or PROMPTS)
            return self.spoken[key], tuple(classes)
        assert self.encoder.head is not None
        found = map_for(classes, outputs_of(self.encoder), self.settings.class_map)
        if found is None:
            outputs = output_names(outputs_of(self.encoder), self.settings.class_map)
            cause = same_but_for(alike(classes, outputs)) or "give --class-map or --train"
            raise Unasked(
                f"which outputs of the classifier stand for {listed(classes)} is not known: {cause}"
            )
        head = Head(self.encoder.head, *found)
        return head, tuple(head.classes)

    def features(self, data: Dataset, what: str) -> Embeddings:
        """Features of every readable image."""
        return self.model.features(data, what)

    def answers_to(self, change: Change) -> tuple[Ids, Ids]:
        """Index of each readable image of `base`, and the answer to its changed copy."""
        name, data = self.base_set
        return self.model.answers(data, self.answerer(data), [change], name)[change]

    @property
    def key(self) -> str:
        """Of everything that answers depend on, the test images aside."""
        return f"{self.model.weights} {self.answers_by} {data_key(self.train)} {self.seed} {self.settings}"

    def option(self, name: str) -> Any:
        """The value of an audit's own option, None where it was not given."""
        return self.settings.options.get(name)

    def item(
        self, image: NDArray[np.uint8], name: str, caption: str, badge: str, alt: str, **more: str
    ) -> dict[str, Any]:
        """An item of a gallery, its picture saved under `name`; more: `of` (the image it shows), `row` (items side by side)."""
        return {"image": self.picture(image, name), **more, "caption": caption, "badge": badge, "alt": alt}

    def picture(self, image: NDArray[np.uint8], name: str) -> str:
        """Save a picture below the audit's folder; returns its relative path."""
        where = self.folder / "pictures" / f"{name}.png"
        where.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(where)
        return where.relative_to(self.folder).as_posix()
