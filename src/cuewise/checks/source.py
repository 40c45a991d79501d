"""What every data source promises, as it opens without options."""

from __future__ import annotations

import pickle

import numpy as np

from cuewise.checks.check import need
from cuewise.data import Dataset, Loader
from cuewise.data.openers import Opener
from cuewise.views import RECIPES, View, Views


def opened(opener: Opener) -> Dataset:
    return Dataset([opener.open()])


def is_described(opener: Opener) -> None:
    """It says what it opens, and opens without options."""
    need(opener.summary and "\n" not in opener.summary, "the summary is not one line")
    need(len(opened(opener)), "it opens an empty set")


def images_and_labels_fit(opener: Opener) -> None:
    """Images are uint8 H×W×3 and the same each time; names are unique; each label is a position in `classes`."""
    data = opened(opener)
    for i in {0, len(data) // 2, len(data) - 1}:
        image = data.image(i)
        right = image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
        need(right, f"image {i} is {image.dtype} {image.shape}, not uint8 H×W×3")
        need(np.array_equal(image, data.image(i)), f"image {i} is another one when it is read again")
    names = [data.name(i) for i in range(min(len(data), 10_000))]
    need(len(set(names)) == len(names), "two images have the same name")
    if data.labels is not None:
        need(len(data.labels) == len(data), "there are not as many labels as images")
        need(
            data.labels.min() >= 0 and data.labels.max() < len(data.classes),
            "a label is not a position in `classes`",
        )


def is_fingerprinted(opener: Opener) -> None:
    """Opened twice, it has the same fingerprint: a count and a hash."""
    first, second = (opened(opener).fingerprint() for _ in range(2))
    need(first == second, "its fingerprint is another one when it is opened again")
    need(first["count"] == len(opened(opener)), "the fingerprint counts other images than there are")


def works_in_other_processes(opener: Opener) -> None:
    """It can be pickled, and worker processes load batches of it."""
    data: Dataset = pickle.loads(pickle.dumps(opened(opener)))
    views = Views([View("query", RECIPES["simclr"])])
    size = min(2, len(data))
    plain, worked = (
        next(iter(Loader(data, views, batch_size=size, seed=0, workers=w).batches())) for w in (0, 1)
    )
    need((plain.views["query"] == worked.views["query"]).all(), "a worker loads another image")


CHECKS = (is_described, images_and_labels_fit, is_fingerprinted, works_in_other_processes)
