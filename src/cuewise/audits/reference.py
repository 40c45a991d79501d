"""Can home-made conflict images be read at all? Asked of a reference that has nothing to do with the model under audit.

The reference is a linear probe on hand-made features (gradients on a grid, gradients at three scales, colours), fitted
on labelled images of which no stimulus was made. It knows both cues and needs no weights; it is weak, so its share of
recognised stimuli is read against its own accuracy on the unchanged sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.audits.stimuli import Conflicts
from cuewise.data import BrokenImage, Dataset, Image
from cuewise.probes import LinearProbe
from cuewise.scores import Score, proportion, show_share, show_span
from cuewise.views import center

SIDE, CELLS, ANGLES, LEVELS = 64, 8, 9, 4
MOST_FITTED, MOST_ASKED = 1500, 120  # images
FEWEST = 4  # training images of a class
NAME = "linear probe on hand-made gradients and colours"
Row = NDArray[np.float32]


@dataclass(frozen=True)
class Validity:
    """What the reference makes of the stimuli and of the unchanged images they were made of."""

    named: Score  # shape or texture
    sources: Score  # the right class
    fitted: int  # training images

    def __str__(self) -> str:
        return (
            f"a reference ({NAME}, fitted on {self.fitted} other images; right on {show_share(self.sources.value)} of "
            f"{self.sources.n} unchanged sources) names shape or texture in {show_share(self.named.value)} of "
            f"{self.named.n} ({show_span(self.named.low, self.named.high)})"
        )


def features(image: Image) -> Row:
    """Gradient histograms on a grid, gradient histograms of the whole at three scales, and a colour histogram."""
    small = cv2.resize(center(image, min(image.shape[:2])), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    grey = small.astype(np.float32).mean(-1)
    grid = _oriented(grey).reshape(CELLS, SIDE // CELLS, CELLS, SIDE // CELLS, ANGLES).sum((1, 3))
    grid /= np.linalg.norm(grid, axis=-1, keepdims=True) + 20.0
    whole = [
        _oriented(cv2.resize(grey, (s, s), interpolation=cv2.INTER_AREA)).mean((0, 1)) for s in (64, 32, 16)
    ]
    level = small.astype(np.int64) * LEVELS // 256
    colour = np.bincount((level @ [LEVELS**2, LEVELS, 1]).ravel(), minlength=LEVELS**3) / SIDE**2
    return np.concatenate([grid.ravel(), np.log1p(whole).ravel(), np.sqrt(colour)]).astype(np.float32)


def _oriented(grey: Row) -> Row:
    """H×W×ANGLES: the length of the gradient, in the bin of its direction."""
    dy, dx = np.gradient(grey)
    bins = (np.arctan2(dy, dx) % np.pi / np.pi * ANGLES).astype(np.int64) % ANGLES
    return (np.hypot(dx, dy)[..., None] * (bins[..., None] == np.arange(ANGLES))).astype(np.float32)


def validity(stimuli: Conflicts, train: Dataset | None, seed: int) -> Validity | None:
    """Ask the reference about some stimuli and their sources; None where there are too few other images to fit it on.

    train: labelled images of the same classes, beside those of the stimuli's own set that no stimulus was made of
    """
    rng = np.random.default_rng(seed)
    fitted = _fit(stimuli, train, rng)
    if fitted is None:
        return None
    probe, count = fitted
    asked = rng.permutation(len(stimuli))[:MOST_ASKED].tolist()
    assert stimuli.data.labels is not None
    sources = sorted({j for i in asked for j in stimuli.rows[i]})
    x, y = _read(stimuli.data, sources, stimuli.data.labels)
    right = proportion("sources", int((probe.predict(x) == y).sum()), len(y), NAME)
    x, rows = _read(stimuli, asked, np.arange(len(stimuli)))
    said = probe.predict(x)
    named = (said == stimuli.columns["shape"][rows]) | (said == stimuli.columns["texture"][rows])
    return Validity(proportion("validity", int(named.sum()), len(rows), NAME), right, count)


def _fit(
    stimuli: Conflicts, train: Dataset | None, rng: np.random.Generator
) -> tuple[LinearProbe, int] | None:
    """The probe and how many images it was fitted on: none that a stimulus was made of."""
    data, used = stimuli.data, {j for pair in stimuli.rows for j in pair}
    assert data.labels is not None
    free = [j for j in range(len(data)) if j not in used]
    free = [free[k] for k in rng.permutation(len(free))[:MOST_FITTED]]
    x, y = _read(data, free, data.labels)
    if train is not None and train is not data and train.labels is not None:
        place = {name: k for k, name in enumerate(data.classes)}
        own = np.array([place.get(train.classes[k], -1) for k in train.labels])
        rows = rng.permutation(np.flatnonzero(own >= 0))[: MOST_FITTED - len(free)].tolist()
        more, labels = _read(train, rows, own)
        x, y = np.concatenate([x, more]), np.concatenate([y, labels])
    classes, counts = np.unique(y, return_counts=True)
    wanted = {int(stimuli.columns[cue][i]) for cue in ("shape", "texture") for i in range(len(stimuli))}
    if not wanted <= {int(k) for k, n in zip(classes, counts) if n >= FEWEST}:
        return None
    return LinearProbe().fit(x, y), len(y)


def _read(
    data: Dataset | Conflicts, rows: list[int], labels: NDArray[np.int64]
) -> tuple[Row, NDArray[np.int64]]:
    """Features and labels of the images that can be read."""
    found, kept = [np.empty((0, len(features(np.zeros((8, 8, 3), np.uint8)))), np.float32)], []
    for i in rows:
        try:
            found.append(features(data.image(i))[None])
            kept.append(i)
        except BrokenImage:
            continue
    return np.concatenate(found), np.asarray(labels[kept], np.int64)
