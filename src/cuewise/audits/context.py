"""Does the model notice an object that does not belong to its scene? (M84)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, audit
from cuewise.audits.figures import figure, histogram, table
from cuewise.audits.kinds import Kind
from cuewise.audits.rank_statistics import auroc, average_precision, resampled
from cuewise.audits.regions import Metric, Model, annotated_sets, embedded_places, space_of
from cuewise.audits.subject import Subject
from cuewise.data import Dataset

BINS = 40
FLAG = "out_of_context"


@dataclass(frozen=True)
class Objects:
    """Annotated objects of a set: their image, their number on it, their distance to it, and whether they are out of context."""

    image: NDArray[np.int64]
    box: NDArray[np.int64]
    distance: NDArray[np.float64]
    out: NDArray[np.bool_]


@audit(
    "context",
    "distance of each object to its scene: do out-of-context objects stand out? (hcl)",
    question="Does it notice an object that does not belong to its scene?",
    rank=125,
    citation="Ge et al. 2023",
    kinds=(
        Kind(
            "context/auroc/*",
            "Out-of-context objects on {}",
            "Probability that an object out of context lies farther from its scene than one in context, over all objects.",
            chance=0.5,
            better="high",
        ),
        Kind(
            "context/ap/*",
            "Finding the out-of-context object on {}",
            "Average precision of out-of-context objects by distance to their scene, per image, averaged over the images "
            "that have one.",
            better="high",
        ),
    ),
    needs_answers=False,
)
def context(subject: Subject) -> Finding:
    """AUROC over all objects and average precision per image, zero-shot: nothing is fitted."""
    space, out, rows = space_of(subject), Finding(), []
    for name, data in annotated_sets(subject):
        flagged = [i for i in range(len(data)) if has_flag(data, i)]
        if not flagged:
            continue
        limit = subject.settings.limit or len(flagged)
        chosen = np.random.default_rng(subject.seed).permutation(flagged)[:limit]
        found = measure(subject, data, space, sorted(chosen.tolist()))
        if not found.out.any() or found.out.all():
            continue
        protocol = f"distance to the whole image in the {space.where}, objects as they are, zero-shot, bootstrap over images"
        units = [np.flatnonzero(found.image == i) for i in np.unique(found.image)]
        judged = [own for own in units if found.out[own].any() and not found.out[own].all()]

        def area(drawn: NDArray[np.int64], found: Objects = found, units: Any = units) -> float:
            own = np.concatenate([units[k] for k in drawn])
            return auroc(found.distance[own], found.out[own])

        precision = np.array([average_precision(found.distance[own], found.out[own]) for own in judged])
        out.add(
            resampled(f"context/auroc/{name}", area, len(units), len(found.out), protocol, subject.seed),
            chance=0.5,
        )
        if len(judged):
            ap = resampled(
                f"context/ap/{name}",
                lambda drawn, p=precision: float(p[drawn].mean()),  # type: ignore[misc]
                len(judged),
                len(judged),
                protocol,
                subject.seed,
            )
            out.add(ap, chance=chance_of(found, judged))
        out.figures[f"context/{name}"] = distances(name, space, found)
        far, near = found.distance[found.out], found.distance[~found.out]
        rows.append([name, len(units), len(far), len(near), float(far.mean()), float(near.mean())])
    if not out.scores:
        raise Unasked(
            "no test set says which objects are out of context: column context=out of a table, or shapes:scenes"
        )
    columns = ["test set", "images", "out of context", "in context", "mean distance out", "mean distance in"]
    out.tables["context"] = table("Objects in and out of context", columns, rows)
    return out


def has_flag(data: Dataset, i: int) -> bool:
    """Whether it is known of the image's objects if they are out of context."""
    boxes = data.facts(i).boxes
    return boxes is not None and len(boxes) > 0 and FLAG in boxes.flags


def measure(model: Model, data: Dataset, space: Metric, images: list[int]) -> Objects:
    """The distance of every object to its image."""
    seen, vectors = embedded_places(model, data, space, images)
    whole = {place.image: row for row, place in enumerate(seen) if place.box < 0}
    rows = [row for row, place in enumerate(seen) if place.box >= 0]
    scenes = vectors[[whole[seen[row].image] for row in rows]]
    out = []
    for row in rows:
        boxes = data.facts(seen[row].image).boxes
        assert boxes is not None
        out.append(bool(boxes.flags[FLAG][seen[row].box]))
    return Objects(
        np.array([seen[row].image for row in rows], np.int64),
        np.array([seen[row].box for row in rows], np.int64),
        space.distances(scenes, vectors[rows]),
        np.array(out, bool),
    )


def chance_of(found: Objects, judged: list[NDArray[np.int64]]) -> float:
    """Mean average precision of a random order of each image's objects, by drawing."""
    rng = np.random.default_rng(0)
    drawn = [average_precision(rng.random(len(own)), found.out[own]) for own in judged for _ in range(20)]
    return float(np.mean(drawn))


def distances(name: str, space: Metric, found: Objects) -> dict[str, Any]:
    """Distances of objects in and out of context."""
    edges = np.linspace(found.distance.min(), found.distance.max() + 1e-9, BINS + 1)
    drawn = [
        histogram(what, found.distance[rows], edges)
        for what, rows in (("in context", ~found.out), ("out of context", found.out))
    ]
    xlabel = "distance in the ball" if space.curvature is not None else "1 − cosine"
    title = f"Distance of objects to their scenes on {name}"
    return figure("histogram", title, xlabel, *drawn, ylabel="share of objects")
