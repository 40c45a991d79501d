"""A trained arm with the sets of its lab: models whose features and probes are made once, whatever is measured."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from cuewise.audits.answerer import Answerer
from cuewise.audits.engine import Engine
from cuewise.audits.measured import Measured
from cuewise.audits.measures import accuracy
from cuewise.data import Dataset, open_data
from cuewise.encoders import load_encoder
from cuewise.probes import LinearProbe
from cuewise.probes.probe import held_out
from cuewise.studies.labs import Lab

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

    def answerer(self, role: str = "probe") -> Answerer:
        """A linear probe on a labelled set, with the names of its classes."""
        return self.model.answerer(self.data(role))

    def accuracy(self, train: str, test: str) -> float:
        """Of a probe on one set, on the images of another whose class it knows."""
        return accuracy(self.model, self.answerer(train), self.data(test)).value

    def held_out_accuracy(self, role: str) -> float:
        """Of a probe on a set itself, tested on the fifth of it that `cuewise probe` holds out."""
        found = self.model.features(self.data(role))
        rest, held = held_out(found.labels, np.random.default_rng([0, 1]))
        probe = LinearProbe().fit(found.features[rest], found.labels[rest])
        return float((probe.predict(found.features[held]) == found.labels[held]).mean())


@lru_cache(maxsize=32)
def opened(specs: tuple[str, ...]) -> Dataset:
    """A set by its names, cut to a fixed random part where it is larger than needed; kept open between arms."""
    data = open_data(list(specs))
    if len(data) <= MOST:
        return data
    return data.select(np.sort(np.random.default_rng(0).permutation(len(data))[:MOST]))
