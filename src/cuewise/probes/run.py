"""cuewise probe: fit on one labelled set, score on others."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuewise.data import Dataset, open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.embed import Embedded, embed_dataset
from cuewise.encoders.load import as_torch_device
from cuewise.errors import UserError
from cuewise.probes.knn import KNNProbe
from cuewise.probes.linear import LinearProbe
from cuewise.probes.probe import Probe
from cuewise.scores import Score

KINDS = {"linear": LinearProbe.__doc__, "knn": KNNProbe.__doc__}


def run_probe(
    kind: str,
    model: str,
    *,
    train: list[str],
    test: list[str],
    k: int = 20,
    temperature: float = 0.07,
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
) -> dict[str, Any]:
    """Accuracy of a probe on the frozen encoder, for each test set by itself."""
    if kind not in KINDS:
        raise UserError(f"no probe {kind!r}; there are: {', '.join(KINDS)}")
    probe: Probe = LinearProbe(seed=seed) if kind == "linear" else KNNProbe(k, temperature)
    encoder = load_encoder(model, size=size).to(as_torch_device(device))
    fitted = labelled(train)
    features = embed_dataset(encoder, fitted, label="embedding train")
    scores: list[Score] = []
    if test:
        probe.fit(features.features, features.labels)
        for name in test:
            data = labelled([name])
            found = embed_dataset(encoder, data, label=f"embedding {name}")
            rows, labels = shared_classes(found, data, fitted)
            scores += _both(probe, found.features[rows], labels, name, len(fitted.classes))
    else:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(features.labels))
        held, rest = order[: len(order) // 5], order[len(order) // 5 :]
        probe.fit(features.features[rest], features.labels[rest])
        scores += _both(
            probe, features.features[held], features.labels[held], "held-out", len(fitted.classes)
        )
    return {
        "model": model,
        "probe": kind,
        "scores": [s.as_dict() for s in scores],
        "classes": list(fitted.classes),
    }


def labelled(specs: list[str]) -> Dataset:
    """A data set with labels, or an error that says how to give them."""
    data = open_data(specs)
    if data.labels is None:
        raise UserError(f"{', '.join(specs)} has no labels: put the images into one folder a class")
    return data


def shared_classes(
    found: Embedded, test: Dataset, train: Dataset
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of the test set whose class was trained, and their labels by the training set's numbering."""
    number = {name: i for i, name in enumerate(train.classes)}
    mapped = np.array([number.get(name, -1) for name in test.classes], np.int64)[found.labels]
    rows = np.flatnonzero(mapped >= 0)
    if not len(rows):
        raise UserError(
            f"the test set shares no class with the training set ({', '.join(train.classes[:5])}, …)"
        )
    return rows, mapped[rows]


def _both(probe: Probe, X: Any, y: Any, where: str, classes: int) -> list[Score]:
    out = [probe.score(X, y, f"top1/{where}")]
    return out + ([probe.score(X, y, f"top5/{where}", k=5)] if classes > 5 else [])
