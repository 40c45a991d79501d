"""A trained arm as the measures see it: encoder, method, and the features of each set, made once."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.embed import Embedded, embed_dataset
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.probes import LinearProbe
from cuewise.probes.run import shared_classes
from cuewise.studies.labs import Sets
from cuewise.train.reload import load_method

MOST = 12_500  # images of a set that are embedded; more tell no more
HELD_OUT = 5  # one image in so many is kept from the probe where there is no set to test on


class Trained:
    """One run folder, asked about a lab's sets."""

    def __init__(self, folder: Path, sets: Sets) -> None:
        self.folder, self.sets = folder, sets
        self._features: dict[str, Embedded] = {}
        self._probes: dict[str, LinearProbe] = {}

    @cached_property
    def encoder(self) -> Encoder:
        return load_encoder(str(self.folder))

    @cached_property
    def method(self) -> Method:
        """With its heads; in evaluation mode."""
        return load_method(self.folder)

    def data(self, role: str) -> Dataset:
        return opened(tuple(self.sets[role]))

    def features(self, role: str) -> Embedded:
        if role not in self._features:
            self._features[role] = embed_dataset(self.encoder, self.data(role), workers=0, label=None)
        return self._features[role]

    def probe(self, role: str = "probe") -> LinearProbe:
        """A linear probe on the features of a labelled set."""
        if role not in self._probes:
            found = self.features(role)
            if self.data(role).labels is None:
                raise UserError(
                    f"{' '.join(self.sets[role])} has no labels: put the images into one folder a class"
                )
            self._probes[role] = LinearProbe().fit(found.features, found.labels)
        return self._probes[role]

    def tested(self, train: str, test: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Predictions and labels (the probe's numbering) on the test set's images of trained classes, and their rows."""
        found = self.features(test)
        rows, labels = shared_classes(found, self.data(test), self.data(train))
        return self.probe(train).predict(found.features[rows]), labels, rows

    def accuracy(self, train: str, test: str) -> float:
        said, labels, _ = self.tested(train, test)
        return float((said == labels).mean())

    def held_out_accuracy(self, role: str) -> float:
        """Of a probe on the set itself, tested on a fixed fifth of it that it never saw."""
        found = self.features(role)
        order = np.random.default_rng(0).permutation(len(found.labels))
        held, rest = order[::HELD_OUT], np.setdiff1d(order, order[::HELD_OUT])
        probe = LinearProbe().fit(found.features[rest], found.labels[rest])
        return float((probe.predict(found.features[held]) == found.labels[held]).mean())


@lru_cache(maxsize=32)
def opened(specs: tuple[str, ...]) -> Dataset:
    """A set by its names, cut to a fixed random part where it is larger than needed; kept open between arms."""
    data = open_data(list(specs))
    if len(data) <= MOST:
        return data
    return data.select(np.sort(np.random.default_rng(0).permutation(len(data))[:MOST]))
