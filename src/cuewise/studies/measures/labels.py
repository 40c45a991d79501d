"""Arms whose labels were noisy: the error of their own classifier, and how well the confusion was estimated."""

from __future__ import annotations

import json

from cuewise.audits.measures import accuracy
from cuewise.studies.measures.arm import TrainedArm
from cuewise.studies.measures.measure import Quantities, measure
from cuewise.train.phases import FILE


@measure("error", "test error of the arm's own classifier; no probe sees a clean label", "probe", "clean")
def error(arm: TrainedArm) -> Quantities:
    """On the images of the classes that the arm knows."""
    return {"error": 1 - accuracy(arm.model, arm.own_answerer(), arm.data("clean")).value}


@measure("confusion", "mean distance of the estimated confusion from the true one, entry by entry", "probe")
def confusion(arm: TrainedArm) -> Quantities:
    """Of arms that were corrected; others have no such quantity."""
    file = arm.folder / FILE
    known = json.loads(file.read_text())["mean_error"] if file.is_file() else None
    return {} if known is None else {"confusion/error": float(known)}
