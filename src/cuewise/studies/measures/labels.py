"""Arms whose labels were noisy: the error of their own classifier, and how well the confusion was estimated."""

from __future__ import annotations

import json

import numpy as np

from cuewise.data import open_data
from cuewise.encoders.embed import embed_dataset
from cuewise.methods.supervised import Supervised
from cuewise.studies.measures.arm import TrainedArm
from cuewise.studies.measures.measure import Quantities, measure
from cuewise.train.phases import FILE
from cuewise.train.reload import load_config, load_method


@measure("error", "test error of the arm's own classifier; no probe sees a clean label", "probe", "clean")
def error(arm: TrainedArm) -> Quantities:
    """On the images of the classes that the arm knows."""
    method, data = load_method(arm.folder), arm.data("clean")
    assert isinstance(method, Supervised)
    known = list(open_data(load_config(arm.folder).data).classes)
    numbers = np.array([known.index(name) if name in known else -1 for name in data.classes])
    assert data.labels is not None
    data = data.select(numbers[data.labels] >= 0)
    found = embed_dataset(
        method.encoder, data, forward=lambda x: method.classifier(method.encoder(x)), workers=0, label=None
    )
    return {"error": float(np.mean(found.features.argmax(1) != numbers[found.labels]))}


@measure("confusion", "mean distance of the estimated confusion from the true one, entry by entry", "probe")
def confusion(arm: TrainedArm) -> Quantities:
    """Of arms that were corrected; others have no such quantity."""
    file = arm.folder / FILE
    known = json.loads(file.read_text())["mean_error"] if file.is_file() else None
    return {} if known is None else {"confusion/error": float(known)}
