"""Does the norm of an image's embedding reflect how many objects it shows? (M83)"""

from __future__ import annotations

import numpy as np

from cuewise import scores
from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.figures import figure, series, table
from cuewise.audits.kinds import Kind
from cuewise.audits.rank_statistics import spearman
from cuewise.audits.regions import annotated_sets, space_of
from cuewise.audits.subject import Subject

LEAST = 5  # images of a group that has a mean of its own


@audit(
    "uncertainty",
    "norm of an image's embedding against the number of objects on it (hcl)",
    question="Does it know how many things are on an image?",
    rank=120,
    citation="Ge et al. 2023",
    kinds=(
        Kind(
            "uncertainty/rho/*",
            "Norm and number of objects on {}",
            "Rank correlation between the norm of an image's embedding and the number of its annotated objects.",
            unit="number",
            chance=0.0,
            reading="0 is unrelated, 1 grows with every object",
        ),
        Kind(
            "uncertainty/rho_classes/*",
            "Norm and number of classes on {}",
            "Rank correlation between the norm of an image's embedding and the number of different classes on it.",
            unit="number",
            chance=0.0,
            reading="0 is unrelated, 1 grows with every class",
        ),
        Kind(
            "uncertainty/norm/*",
            "Mean norm by set and number of objects: {}",
            "Mean norm of the embeddings of images with that many annotated objects.",
            unit="number",
            reading="in the model's own unit",
        ),
    ),
    needs=lambda subject: Needs(sets=annotated_sets(subject)),
    needs_answers=False,
)
def uncertainty(subject: Subject) -> Finding:
    """Spearman's ρ with its interval, the mean norm per number of objects, and a figure."""
    space, out, rows = space_of(subject), Finding(), []
    for name, data in annotated_sets(subject):
        found = subject.features(data, f"features of {name}")
        norms = np.linalg.norm(space.vectors(found.features), axis=1)
        facts = [data.facts(i) for i in found.index.tolist()]
        objects = np.array([0 if f.boxes is None else len(f.boxes) for f in facts])
        classes = np.array([0 if f.labels is None else int(f.labels.sum()) for f in facts])
        protocol = f"norm of the {space.where}, whole images, Spearman, bootstrap over images"
        for what, counts in (("rho", objects), ("rho_classes", classes)):
            if len(np.unique(counts)) > 1:
                out.add(
                    spearman(f"uncertainty/{what}/{name}", norms, counts, protocol, subject.seed), chance=0.0
                )
        groups = [k for k in np.unique(objects) if (objects == k).sum() >= LEAST]
        means = [scores.mean(f"uncertainty/norm/{name}/{k}", norms[objects == k], protocol) for k in groups]
        out.add(*means)
        if means:
            out.figures[f"uncertainty/{name}"] = figure(
                "lines",
                f"Norm and number of objects on {name}",
                "objects on the image",
                series(subject.name, [int(k) for k in groups], means),
                ylabel=f"mean norm of the {space.where}",
            )
        counted = [(int(k), norms[objects == k]) for k in np.unique(objects)]
        rows += [[name, k, len(own), float(own.mean())] for k, own in counted]
    if not out.scores:
        raise Unasked("all test images have the same number of objects")
    columns = ["test set", "objects", "images", "mean norm"]
    out.tables["uncertainty"] = table("Norm by number of objects", columns, rows)
    return out
