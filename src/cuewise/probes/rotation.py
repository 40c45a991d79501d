"""Does the encoder keep the orientation of an image? A 4-way linear probe on images turned by 0, 90, 180 and 270 degrees."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.data import open_data
from cuewise.encoders import Encoder
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.linear import LinearProbe
from cuewise.probes.probe import Features, Labels, Mask, top_hits
from cuewise.probes.task import HELD_OUT, Task, rows_of
from cuewise.scores import Score, mean

ANGLES = (0, 90, 180, 270)  # counter-clockwise, the labels 0 … 3
VIEW = "center, turned by 0-90-180-270"


class RotationProbe(LinearProbe):
    """The exact linear probe on every image in all four rotations; an image is on one side of a split with all of them."""

    @property
    def protocol(self) -> str:
        return f"rotation4_all_angles_split_by_image_{super().protocol}"

    def score(
        self, X: Features, y: Labels, name: str = "accuracy", k: int = 1, right: Mask | None = None
    ) -> Score:
        """Rows as `in_all_angles` gives them; the interval is over images, whose four rows are not independent."""
        hits = top_hits(self.predict_proba(X), y, k, right)
        if len(hits) % len(ANGLES):
            return mean(name, hits, self.protocol)
        return mean(name, hits.reshape(-1, len(ANGLES)).mean(1), self.protocol)


class Turned:
    """Normalised square images B×3×S×S → B×4D features, one D for each angle.

    The turn comes after the crop to a square, and is an exact rot90: no border or aspect ratio reveals the angle.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, x: Tensor) -> Tensor:
        turns = (torch.rot90(x, quarter, (2, 3)) for quarter in range(len(ANGLES)))
        return torch.cat(
            [self.encoder(t.contiguous(memory_format=torch.channels_last)) for t in turns], dim=1
        )


def in_all_angles(features: NDArray[np.float32]) -> tuple[Features, Labels, Labels]:
    """N×4D → 4N×D features, their angles as labels 0 … 3, and the image each row belongs to."""
    n = len(features)
    rows = features.reshape(n * len(ANGLES), -1)
    return rows, np.tile(np.arange(len(ANGLES)), n), np.repeat(np.arange(n), len(ANGLES))


@dataclass(frozen=True)
class Orientation(ProbeKind):
    """Every image in four rotations; sets need no labels."""

    name = "rotation"
    summary = "which of four ways up is an image? labels not needed"
    estimator = RotationProbe

    def run(self, task: Task) -> list[Score]:
        how = {"view": VIEW, "forward": Turned(task.encoder)}
        probe = RotationProbe(seed=task.seed)
        found = task.features(open_data(task.train), "train in four rotations", **how)
        if task.test:
            rest = np.arange(len(found.index))
            sets = [(n, task.features(open_data(n), f"{n} in four rotations", **how)) for n in task.test]
        else:
            rest, held = task.halves(np.zeros(len(found.index), np.int64))
            sets = [(HELD_OUT, rows_of(found, held))]
        X, y, images = in_all_angles(found.features[rest])
        protocol = task.protocol(probe.fit(X, y, images), len(rest), 4)
        scores = []
        for name, each in sets:
            X, y, _ = in_all_angles(each.features)
            task.tests.append({"name": name, "images": len(each.index)})
            scores.append(replace(probe.score(X, y, f"top1/{name}"), protocol=protocol))
        return scores
