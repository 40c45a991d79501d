"""A trained arm with the sets of its lab: models whose features and probes are made once, whatever is measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from torch import nn

from cuewise.audits.answerer import Answerer
from cuewise.audits.engine import Engine
from cuewise.audits.head import Head
from cuewise.audits.measured import Measured
from cuewise.audits.measures import accuracy
from cuewise.data import Dataset, open_data
from cuewise.encoders import load_encoder
from cuewise.probes import LinearProbe, Probe
from cuewise.probes.draws import DRAWS, over_both
from cuewise.probes.probe import Features, Labels, held_out, top_hits
from cuewise.scores import Score
from cuewise.studies.labs import Lab
from cuewise.studies.table import of_draw
from cuewise.train.checkup import part
from cuewise.train.reload import load_config, load_method

Quantities = dict[str, float]

MOST = 12_500  # images of a set that are embedded: more would not narrow an interval over seeds


class TrainedArm:
    """One run folder, measured on the sets of a lab."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder, self.lab = folder, lab

    @cached_property
    def model(self) -> Measured:
        """The encoder, with its features and probes."""
        return Measured(
            self.folder.name, load_encoder(str(self.folder)), self.folder, engine=Engine(workers=0)
        )

    @cached_property
    def spaces(self) -> Measured:
        """The same run in all of LooC's embedding spaces."""
        encoder = load_encoder(f"{self.folder}#all")
        return Measured(self.folder.name, encoder, self.folder, engine=Engine(workers=0))

    def data(self, role: str) -> Dataset:
        return opened(tuple(self.lab.sets[role]))

    @property
    def own_data(self) -> Dataset:
        """The images that it was trained on, unfiltered."""
        return opened(tuple(load_config(self.folder).data))

    def own_answerer(self) -> Answerer:
        """The classifier that a supervised arm was trained with."""
        head = load_method(self.folder).own_classifier()
        assert head is not None
        return own_classifier(head, self.own_data.classes, "own")

    def answerer(self, role: str = "probe") -> Answerer:
        """A linear probe on a labelled set, with the names of its classes."""
        return self.model.answerer(self.data(role))

    def accuracy(self, train: str, test: str, name: str = "") -> Quantities:
        """Of a probe on one set, on the images of another whose class it knows, by the name of that set or another."""
        return quantities(name or test, accuracy(self.model, self.answerer(train), self.data(test)))

    def held_out_accuracy(self, role: str, name: str = "") -> Quantities:
        """Of a probe on a set itself, tested on the fifth of it that `cuewise probe` holds out."""
        found = self.model.features(self.data(role))
        rest, held = held_out(found.labels, np.random.default_rng([0, 1]))
        probe = LinearProbe().fit(found.features[rest], found.labels[rest])
        return probed(name or role, probe, found.features[held], found.labels[held])


def own_classifier(head: nn.Module, classes: Sequence[str], key: str) -> Answerer:
    """A classifier that was trained with its network: output k is class k."""
    probe = Head(head, {name: [k] for k, name in enumerate(classes)}, key)
    return Answerer(probe, tuple(classes), key)


def probed(name: str, probe: Probe, X: Features, y: Labels) -> Quantities:
    """The accuracy of a fitted probe, on all its training images and on each draw of them."""
    score = probe.score(X, y, name)
    return quantities(name, over_both(score, [float(top_hits(p, y).mean()) for p in probe.drawn(X)]))


def quantities(name: str, score: Score) -> Quantities:
    """A score as a quantity, and one for each draw of the training images."""
    return {name: score.value, **{of_draw(b, name): v for b, v in enumerate(score.draws)}}


def mean_of(name: str, found: Quantities, names: Sequence[str]) -> Quantities:
    """The mean of quantities, on each draw as well."""
    out = {name: float(np.mean([found[n] for n in names]))}
    for b in range(DRAWS):
        parts = [found[of_draw(b, n)] for n in names if of_draw(b, n) in found]
        if len(parts) == len(names):
            out[of_draw(b, name)] = float(np.mean(parts))
    return out


@lru_cache(maxsize=32)
def opened(specs: tuple[str, ...]) -> Dataset:
    """A set by its names, cut to a fixed random part where it is larger than needed; kept open between arms."""
    return part(open_data(list(specs)), MOST)
