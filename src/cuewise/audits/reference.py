"""Are conflict images made from the user's classes recognisable?

A reference is asked that has nothing to do with the model under audit.

The reference is a pair of linear probes on hand-made features: one sees the layout of the blurred image, the other
statistics without places (local patterns, bands, directions, colours). Both are fitted on labelled images of which no
stimulus was made. A stimulus is read where the first names its shape or the second its texture. The pair needs no
weights and is weak, so the share that it reads is compared with the share of unchanged sources that it recognises.
"""

from __future__ import annotations

import math
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
L2 = (0.1, 1.0)
NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))
NAME = "pair of linear probes on hand-made layout and texture"
Row = NDArray[np.float32]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Validity:
    """What the reference makes of the stimuli and of the unchanged images they were made of."""

    named: Score  # shape or texture
    sources: Score  # the right class
    fitted: int  # training images
    cues: tuple[float, float] = (math.nan, math.nan)  # shares of stimuli whose shape, whose texture is named

    def __str__(self) -> str:
        sources, named = self.sources, self.named
        shape, texture = map(show_share, self.cues)
        return (
            f"a reference ({NAME}, fitted on {self.fitted} other images; it recognises {show_share(sources.value)} of "
            f"{sources.n} unchanged sources) reads shape or texture in {show_share(named.value)} of {named.n} "
            f"({show_span(named.low, named.high)}; shape {shape}, texture {texture})"
        )


def layout(image: Image) -> Row:
    """Brightness and gradients of the blurred image, on a grid."""
    grey = cv2.GaussianBlur(_small(image).mean(-1), (0, 0), SIDE / 20)
    grey = (grey - grey.mean()) / (grey.std() + 4.0)
    grid = _oriented(grey).reshape(CELLS, SIDE // CELLS, CELLS, SIDE // CELLS, ANGLES).sum((1, 3))
    grid /= np.linalg.norm(grid, axis=-1, keepdims=True) + 1.0
    coarse = cv2.resize(grey, (2 * CELLS, 2 * CELLS), interpolation=cv2.INTER_AREA)
    return np.concatenate([grid.ravel(), coarse.ravel()]).astype(np.float32)


def texture(image: Image) -> Row:
    """Statistics without places: local binary patterns, energy of bands, directions at three scales, colours."""
    small = _small(image)
    grey = small.mean(-1)
    centre = grey[1:-1, 1:-1]
    around = [grey[1 + y : SIDE - 1 + y, 1 + x : SIDE - 1 + x] for y, x in NEIGHBOURS]
    pattern = sum((n > centre).astype(np.int64) << k for k, n in enumerate(around))
    local = np.bincount(np.asarray(pattern).ravel(), minlength=256) / centre.size
    scales = [cv2.resize(small, (s, s), interpolation=cv2.INTER_AREA) for s in (64, 32, 16)]
    bands = [np.abs(s - cv2.GaussianBlur(s, (0, 0), 1.0)).mean((0, 1)) for s in scales]
    directions = [_oriented(s.mean(-1)).mean((0, 1)) for s in scales]
    level = small.astype(np.int64).clip(0, 255) * LEVELS // 256
    colour = np.bincount((level @ [LEVELS**2, LEVELS, 1]).ravel(), minlength=LEVELS**3) / SIDE**2
    parts = [np.sqrt(local), np.log1p(bands).ravel(), np.log1p(directions).ravel(), np.sqrt(colour)]
    return np.concatenate(parts).astype(np.float32)


def _small(image: Image) -> Row:
    square = center(image, min(image.shape[:2])).astype(np.float32)
    return np.asarray(cv2.resize(square, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


def _oriented(grey: Row) -> Row:
    """H×W×ANGLES: the length of the gradient, in the bin of its direction."""
    dy, dx = np.gradient(grey)
    bins = (np.arctan2(dy, dx) % np.pi / np.pi * ANGLES).astype(np.int64) % ANGLES
    return (np.hypot(dx, dy)[..., None] * (bins[..., None] == np.arange(ANGLES))).astype(np.float32)


class ReferenceProbes:
    """The two probes, fitted."""

    def __init__(self, layouts: Row, textures: Row, labels: Ids) -> None:
        self.fitted = len(labels)
        self.shape, self.texture = LinearProbe(L2).fit(layouts, labels), LinearProbe(L2).fit(textures, labels)

    def read(self, layouts: Row, textures: Row, shapes: Ids, textured: Ids) -> NDArray[np.bool_]:
        """N×2: where the shape is named from the layout, where the texture from the statistics."""
        return np.stack(
            [self.shape.predict(layouts) == shapes, self.texture.predict(textures) == textured], 1
        )


def validity(stimuli: Conflicts, train: Dataset | None, seed: int) -> Validity | None:
    """Ask the reference about some stimuli and their sources; None where there are too few other images to fit it on.

    train: labelled images of the same classes, beside those of the stimuli's own set that no stimulus was made of
    """
    rng = np.random.default_rng(seed)
    pair = _fit(stimuli, train, rng)
    if pair is None:
        return None
    asked = rng.permutation(len(stimuli))[:MOST_ASKED].tolist()
    assert stimuli.data.labels is not None
    sources = sorted({j for i in asked for j in stimuli.rows[i]})
    a, b, y = _look(stimuli.data, sources, stimuli.data.labels)
    right = pair.read(a, b, y, y)
    a, b, rows = _look(stimuli, asked, np.arange(len(stimuli)))
    read = pair.read(a, b, stimuli.columns["shape"][rows], stimuli.columns["texture"][rows])
    return Validity(
        proportion("validity", int(read.any(1).sum()), len(rows), NAME),
        proportion("sources", int(right.any(1).sum()), len(y), NAME),
        pair.fitted,
        (float(read[:, 0].mean()), float(read[:, 1].mean())) if len(rows) else (math.nan, math.nan),
    )


def guessing(classes: int) -> float:
    """The share that two guesses read."""
    return 1 - (1 - 1 / classes) ** 2


def _fit(stimuli: Conflicts, train: Dataset | None, rng: np.random.Generator) -> ReferenceProbes | None:
    """Fitted on images that no stimulus was made of; None where a class has too few of them."""
    data, used = stimuli.data, {j for pair in stimuli.rows for j in pair}
    assert data.labels is not None
    free = [j for j in range(len(data)) if j not in used]
    free = [free[k] for k in rng.permutation(len(free))[:MOST_FITTED]]
    a, b, y = _look(data, free, data.labels)
    if train is not None and train is not data and train.labels is not None:
        place = {name: k for k, name in enumerate(data.classes)}
        own = np.array([place.get(train.classes[k], -1) for k in train.labels])
        rows = rng.permutation(np.flatnonzero(own >= 0))[: MOST_FITTED - len(free)].tolist()
        more = _look(train, rows, own)
        a, b = np.concatenate([a, more[0]]), np.concatenate([b, more[1]])
        y = np.concatenate([y, more[2]])
    classes, counts = np.unique(y, return_counts=True)
    wanted = {int(stimuli.columns[cue][i]) for cue in ("shape", "texture") for i in range(len(stimuli))}
    enough = {int(k) for k, n in zip(classes, counts) if n >= FEWEST}
    return ReferenceProbes(a, b, y) if wanted <= enough else None


def _look(data: Dataset | Conflicts, rows: list[int], labels: Ids) -> tuple[Row, Row, Ids]:
    """Layouts, textures and labels of the images that can be read."""
    blank = np.zeros((8, 8, 3), np.uint8)
    found: list[tuple[Row, Row]] = [(layout(blank), texture(blank))]  # for their lengths
    kept = []
    for i in rows:
        try:
            image = data.image(i)
        except BrokenImage:
            continue
        found.append((layout(image), texture(image)))
        kept.append(i)
    layouts, textures = (np.stack(part)[1:] for part in zip(*found))
    return layouts, textures, np.asarray(labels[kept], np.int64)
