"""cuewise probe: fit on one labelled set, score on others."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cuewise.data import Dataset
from cuewise.encoders import load_encoder
from cuewise.encoders.card import warn_if_random
from cuewise.encoders.embed import Embedded
from cuewise.encoders.load import as_torch_device
from cuewise.probes.class_map import match
from cuewise.probes.kinds import make_kind
from cuewise.probes.task import Task


def run_probe(
    kind: str,
    model: str,
    *,
    train: list[str],
    test: list[str],
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    keep: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Scores of one kind of probe, for each test set by itself; `options` are those that the kind takes."""
    chosen = make_kind(kind, options)
    with torch.random.fork_rng(devices=[]):  # an architecture without weights is the same one for a seed
        torch.manual_seed(seed)
        encoder = load_encoder(model, size=size).to(as_torch_device(device))
    warn_if_random(encoder.card, str(model))
    task = Task(encoder, train, test, seed, keep, getattr(chosen, "class_map", None))
    task.check_sets()
    scores = chosen.run(task)
    return {
        "model": model,
        "probe": chosen.name,
        "weights": encoder.card.weights,
        "scores": [s.as_dict() for s in scores],
        "tests": task.tests,
        "overlap": task.overlap,
        "skipped": task.skipped,
        **({"classes": list(task.fitted.classes)} if "fitted" in vars(task) else {}),
    }


def shared_classes(
    found: Embedded, test: Dataset, train: Dataset
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of the test set whose class was trained, and their labels by the training set's numbering."""
    got = match(found.labels, test.classes, train.classes)
    return got.rows, got.right.argmax(1)[got.labels]
