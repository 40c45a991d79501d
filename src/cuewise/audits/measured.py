"""A model with what was measured of it: features, probes, answers and pairs are made once per image set.

    model = Measured("mine", load_encoder("runs/mine"), run=Path("runs/mine"), engine=Engine(workers=0))
    train, test = open_data("photos/train"), open_data("photos/test")

    model.features(test).features                # N×D, one pass however often it is asked for
    probe = model.probe(train)                   # a linear probe, fitted once per training set
    answerer = model.answerer(train)             # the probe with the names of its classes
    accuracy(model, answerer, test)              # a Score over the classes that both sets have
    scores, table, _ = conflict_scores(model, answerer, open_data("conflicts"))   # shape bias; equal cues are dropped
    classes = class_accuracies(model, answerer, open_data("textures"))            # class → (right, images)
    near_chance(classes, len(answerer.classes))  # share of classes that are hardly better than guessing
    right_on_copies(model, answerer, test, changes).mean(0)                       # accuracy on changed copies
    similarities(model, train, PairSettings(), limit=512)                         # cosines by pair

The functions are in `cuewise.audits.measures` (and `similarities` in `cuewise.audits.pairs`). An audit asks the same
object, so a number of a study and the same number of an audit come from the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cuewise.audits.answerer import Answerer, Ids, Unasked
from cuewise.audits.change import CLEAN, Change
from cuewise.audits.engine import Engine, Outputs, Pass, Viewer, copies, inputs_of
from cuewise.audits.keys import data_key
from cuewise.audits.pairs import Embedder, PairSettings, PairViews, embedder_of, pair_work
from cuewise.audits.scenes import Scenes
from cuewise.data import Dataset, Transform
from cuewise.encoders import Encoder
from cuewise.encoders.cached import weights_hash
from cuewise.encoders.embed import Embeddings, embed_dataset
from cuewise.probes import LinearProbe

Answered = dict[Change, tuple[Ids, Ids]]
Near = tuple[Ids, NDArray[np.float32]]


@dataclass
class Measured:
    """One model; `seen` has what its passes gave, by key of the image set."""

    name: str
    encoder: Encoder
    run: Path | None = None  # the run folder, where the model is one
    seed: int = 0
    engine: Engine = field(default_factory=Engine)
    seen: dict[str, Outputs] = field(default_factory=dict)  # by key of the set
    known: dict[tuple[str, str], Answered] = field(default_factory=dict)  # by key of the set, and who answers
    near: dict[tuple[str, Change], Near] = field(default_factory=dict)  # by key of the set
    probes: dict[str, LinearProbe] = field(default_factory=dict)
    views: dict[tuple[str, str], Embeddings] = field(default_factory=dict)  # by key of the set, and view
    scenes: dict[str, Scenes] = field(default_factory=dict)  # where objects are, by key of the set

    @cached_property
    def weights(self) -> str:
        return weights_hash(self.encoder)

    @cached_property
    def embedder(self) -> Embedder:
        """What pairs are compared by."""
        return embedder_of(self.encoder, self.run)

    def features(self, data: Dataset, what: str = "features") -> Embeddings:
        """Features of every readable image."""
        key = data_key(data)
        if key not in self.seen:
            self.remember(data, self.engine.run(copies(self._title(what), data, [self.viewer(None)]))[0])
        return self.seen[key].embedded(data)

    def in_view(
        self,
        data: Dataset,
        view: str,
        *,
        transform: Transform | None = None,
        forward: Callable[[Tensor], Tensor] | None = None,
    ) -> Embeddings:
        """The same in another view; `view` names what `transform` and `forward` do, with every setting."""
        key = data_key(data), view
        if key not in self.views:
            self.views[key] = embed_dataset(
                self.encoder,
                data,
                transform=transform,
                forward=forward,
                workers=self.engine.workers,
                label=None,
            )
        return self.views[key]

    def answers(
        self, data: Dataset, answerer: Answerer, changes: Sequence[Change], what: str = ""
    ) -> Answered:
        """Answers to changed copies: {change: (index of each readable image, number of its class)}."""
        known = self.known.setdefault((data_key(data), answerer.key), {})
        missing = tuple(c for c in changes if c not in known)
        if CLEAN in missing:
            found = self.features(data, what)
            known[CLEAN] = found.index, answerer.say(found.features)
        rest = tuple(c for c in missing if c != CLEAN)
        if rest:
            self.remember(data, self._pass(what or "copies", data, answerer, rest), answerer)
        return known

    def cosines(self, data: Dataset, answerer: Answerer, changes: Sequence[Change]) -> dict[Change, Near]:
        """Cosine of the features of each changed copy to those of the image: {change: (index of each image, cosine)}."""
        key = data_key(data)
        missing = tuple(c for c in changes if (key, c) not in self.near)
        if missing:
            self.remember(data, self._pass("copies", data, answerer, (CLEAN, *missing)), answerer)
        return {c: self.near[key, c] for c in changes}

    def _pass(self, what: str, data: Dataset, answerer: Answerer, changes: tuple[Change, ...]) -> Outputs:
        scenes = self.scenes.get(data_key(data))
        work = copies(self._title(what), data, [self.viewer(answerer)], changes, self.seed, scenes)
        return self.engine.run(work)[0]

    def remember(self, data: Dataset, fresh: Outputs, answerer: Answerer | None = None) -> None:
        """Keep the result of a pass: features of clean views, answers to changed ones, their cosines."""
        self.near |= {(data_key(data), c): (fresh.index, cosine) for c, cosine in fresh.cosines.items()}
        if fresh.features.size:
            self.seen[data_key(data)] = fresh
        if answerer is not None:
            self.remember_answers(data, answerer, fresh.index, fresh.answers)

    def remember_answers(
        self, data: Dataset, answerer: Answerer, index: Ids, answers: dict[Change, Ids]
    ) -> None:
        """Keep what was answered to changed copies."""
        known = self.known.setdefault((data_key(data), answerer.key), {})
        known |= {change: (index, given) for change, given in answers.items()}

    def _title(self, what: str) -> str:
        return f"{self.name}: {what}"

    def probe(self, train: Dataset, what: str = "features of the training set") -> LinearProbe:
        """A linear probe on the features of a labelled set."""
        if train.labels is None:
            raise Unasked("no labelled images to fit a probe on: give --train with one folder per class")
        key = data_key(train)
        if key not in self.probes:
            found = self.features(train, what)
            self.probes[key] = LinearProbe(seed=self.seed).fit(found.features, found.labels)
        return self.probes[key]

    def answerer(self, train: Dataset) -> Answerer:
        """The linear probe with the names of its classes."""
        return Answerer(self.probe(train), train.classes, f"{self.seed} {data_key(train)}")

    def viewer(self, answerer: Answerer | None, others: tuple[Answerer, ...] = ()) -> Viewer:
        """This model for the engine."""
        how = "" if answerer is None else f"{answerer.key} {answerer.probe.protocol} {answerer.classes}"
        return Viewer(self.encoder, answerer, self.weights + how + "".join(a.key for a in others), others)

    def pairs(self, data: Dataset, settings: PairSettings, limit: int = 0) -> Outputs:
        """Unit vectors of the views of each pair; see `similarities`."""
        part, numbers = pair_work(data, settings, limit)
        key = pair_key(data, settings, limit)
        if key not in self.seen:
            rendering = PairViews(inputs_of([self.embedder]), settings, numbers)
            work = Pass(self._title("pairs"), part, [self.embedder], rendering)
            self.seen[key] = self.engine.run(work)[0]
        return self.seen[key]

    def remember_pairs(self, data: Dataset, settings: PairSettings, limit: int, fresh: Outputs) -> None:
        """Keep the result of a pass over pairs."""
        self.seen[pair_key(data, settings, limit)] = fresh


def pair_key(data: Dataset, settings: PairSettings, limit: int) -> str:
    return f"{data_key(data)} {settings.key} {min(limit or len(data), len(data))}"
