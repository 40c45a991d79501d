"""Embeddings of whole images and of the objects in them: tangent vectors of its head, or its features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.audits.answerer import Unasked
from cuewise.audits.subject import Named, Subject
from cuewise.data import BrokenImage, Dataset, Image
from cuewise.encoders import Encoder
from cuewise.encoders.embed import evaluating
from cuewise.encoders.spaces import read_heads
from cuewise.objectives.hyperbolic import distance, exp0
from cuewise.views import Crop, ViewParams, apply

Vectors = NDArray[np.float32]
BATCH = 128


class Model(Protocol):
    """What is embedded with: a measured model, or the subject of an audit."""

    @property
    def encoder(self) -> Encoder: ...

    @property
    def run(self) -> Path | None: ...


@dataclass(frozen=True)
class Metric:
    """Where images are compared: the head of a run with hyperbolic loss, the head of another run, or features.

    curvature  of the ball, None where distances are cosines
    """

    head: nn.Module | None
    curvature: float | None

    @property
    def where(self) -> str:
        if self.head is None:
            return "features"
        return "projector" if self.curvature is None else f"projector, curvature {self.curvature:g}"

    @torch.no_grad()
    def vectors(self, features: NDArray[np.float32]) -> Vectors:
        """N×D, not normalised."""
        x = torch.from_numpy(np.ascontiguousarray(features, np.float32))
        return (x if self.head is None else self.head(x)).numpy()

    def distances(self, a: Vectors, b: Vectors) -> NDArray[np.float64]:
        """Of rows: in the ball, or 1 − cosine."""
        x, y = torch.from_numpy(a).double(), torch.from_numpy(b).double()
        if self.curvature is None:
            return (1 - torch.cosine_similarity(x, y, dim=1)).numpy()
        return distance(exp0(x, self.curvature), exp0(y, self.curvature), self.curvature).numpy()


def space_of(model: Model) -> Metric:
    """The head that was saved with the run, where there is one on pooled features."""
    heads = read_heads(model.encoder, model.run) if model.run is not None else None
    if heads is None or heads.own_stage:
        return Metric(None, None)
    return Metric(heads.mlps[0].cpu().eval(), heads.curvature)


def annotated_sets(subject: Subject) -> list[Named]:
    """The test sets whose images have annotated objects."""
    found = [(name, data) for name, data in subject.test if data.object_classes]
    if not found:
        raise Unasked(
            "no test set with objects: give --test with annotations (docs/data.md), for example shapes:scenes"
        )
    return found


@dataclass(frozen=True)
class RegionId:
    """A rectangle of an image: `box` is the number of an object, −1 for the whole image."""

    image: int
    box: int
    crop: Crop


def places(data: Dataset, images: Sequence[int]) -> Iterator[tuple[Image, list[RegionId]]]:
    """Each readable image with its whole and its objects; boxes are cut to whole pixels."""
    for i in images:
        boxes = data.facts(i).boxes
        if boxes is None or not len(boxes):
            continue
        try:
            image = data.image(i)
        except BrokenImage:
            continue
        height, width = image.shape[:2]
        out = [RegionId(i, -1, Crop(0, 0, height, width))]
        for k, (left, top, right, bottom) in enumerate(boxes.corners.tolist()):
            x, y = min(int(left), width - 1), min(int(top), height - 1)
            size = max(1, min(round(bottom), height) - y), max(1, min(round(right), width) - x)
            out.append(RegionId(i, k, Crop(y, x, *size)))
        yield image, out


def embedded_places(
    model: Model, data: Dataset, space: Metric, images: Sequence[int]
) -> tuple[list[RegionId], Vectors]:
    """Vectors of images and of their objects, each resized to the model's size as it is."""
    encoder, size = model.encoder, model.encoder.card.size
    device = next(encoder.parameters()).device
    seen: list[RegionId] = []
    parts: list[NDArray[np.float32]] = []
    waiting: list[NDArray[np.uint8]] = []

    def flush() -> None:
        if waiting:
            x = torch.from_numpy(np.stack(waiting)).to(device)
            found: Tensor = encoder(encoder.normalise(x))
            parts.append(found.float().cpu().numpy())
            waiting.clear()

    with evaluating(encoder):
        for image, found in places(data, images):
            for place in found:
                seen.append(place)
                waiting.append(apply(image, ViewParams(place.crop), size))
                if len(waiting) == BATCH:
                    flush()
        flush()
    if not seen:
        raise Unasked("none of the test images has an object that can be shown")
    return seen, space.vectors(np.concatenate(parts))
