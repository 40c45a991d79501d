"""What answers for a model: a probe or its own classifier, with the names of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.probes import Probe
from cuewise.probes.probe import Features

Ids = NDArray[np.int64]
NO_ANSWER = -1  # NaN or infinity instead of probabilities


class Unasked(UserError):
    """An audit cannot be asked of this model and these data: it is left out, and the report gives the reason."""


@dataclass(frozen=True)
class Answerer:
    """Column k of the probe's probabilities is classes[k]; `key` names what the probe follows from."""

    probe: Probe
    classes: tuple[str, ...]
    key: str = ""

    def probabilities(self, features: Features) -> NDArray[np.float32]:
        """N×C; rows are NaN where the features or the probabilities are not finite."""
        good = np.asarray(np.isfinite(features).all(1))
        found = self.probe.predict_proba(features[good]) if good.any() else np.zeros((0, 0), np.float32)
        return self._whole(good, found)

    def say(self, features: Features) -> Ids:
        """The number of the most probable class, or NO_ANSWER."""
        return named(self.probabilities(features))

    def drawn(self, features: Features) -> list[Ids]:
        """The same from the probe on each draw of its training images; none for what was not fitted here."""
        good = np.asarray(np.isfinite(features).all(1))
        return [named(self._whole(good, p)) for p in self.probe.drawn(features[good])] if good.any() else []

    def _whole(self, good: NDArray[np.bool_], p: NDArray[np.float32]) -> NDArray[np.float32]:
        out = np.full((len(good), len(self.classes)), np.nan, np.float32)
        rows = np.zeros((len(p), len(self.classes)), np.float32)
        rows[:, : p.shape[1]] = p  # a probe knows no column for classes after the last that it has seen
        out[good] = np.where(np.isfinite(p).all(1, keepdims=True), rows, np.nan)
        return out

    def labels(self, data: Dataset) -> Ids:
        """The label of each image by the numbering of `classes`, −1 where its class is not among them."""
        if data.labels is None:
            raise Unasked("no labels: put the images into one folder per class")
        return numbers(data.classes, self.classes)[data.labels]


def named(p: NDArray[np.float32]) -> Ids:
    """The number of the most probable class of each row, or NO_ANSWER."""
    bad = np.asarray(np.isnan(p).any(axis=1))
    return np.where(bad, NO_ANSWER, np.where(bad[:, None], 0, p).argmax(1)).astype(np.int64)


def numbers(names: Sequence[str], classes: Sequence[str]) -> Ids:
    """The place of each name in `classes`, −1 where it is not one; texture k of the embedded set belongs to shape k."""
    place = {name: i for i, name in enumerate(classes)}
    if not set(names) & set(place):
        # with their kernels, which other sets do not wait for
        from cuewise.data.shapes import SHAPES, TEXTURES

        if set(names) <= set(TEXTURES) and set(classes) <= set(SHAPES):
            place = {TEXTURES[SHAPES.index(name)]: i for i, name in enumerate(classes)}
    return np.array([place.get(name, -1) for name in names], np.int64)
