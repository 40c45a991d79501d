"""Noisy labels in a run: the set with its split, and what the run says of it."""

from __future__ import annotations

import numpy as np

from cuewise.config import Config
from cuewise.data import Dataset, Noise, NoisyLabels, noisy
from cuewise.data.noisy_labels import copies
from cuewise.errors import UserError

FEW = 5  # trusted images of a class below which its row of the confusion is mostly chance


def with_labels(config: Config, data: Dataset) -> Dataset:
    """The set as labels.* ask for it: split, noisy labels, and the side to train on."""
    asked = config.labels
    if not asked.noise and asked.gold is None:
        return data
    if data.labels is None:
        raise UserError("labels.* need labels: put the images into one folder per class")
    gold = asked.gold
    if isinstance(gold, str) and gold.replace(".", "", 1).isdigit():
        gold = float(gold)
    source = noisy(data, Noise(asked.noise, gold, config.seed if asked.seed is None else asked.seed))
    if gold is not None and not (~source.trusted).any():
        raise UserError(
            "labels.gold: all images are trusted, and none is left to learn from; list fewer of them"
        )
    missing = sorted(set(np.unique(source.clean)) - set(source.clean[source.trusted]))
    if asked.correction == "glc" and missing:
        names = ", ".join(data.classes[k] for k in missing[:3])
        raise UserError(
            f"labels.gold={gold}: no trusted image of {len(missing)} classes ({names}); list one of each"
        )
    labelled = Dataset([source])
    if asked.use == "all":
        return labelled
    return labelled.select(source.trusted if asked.use == "gold" else ~source.trusted)


def source_of(data: Dataset) -> NoisyLabels | None:
    """The noisy labels behind a set, where it has any."""
    return next((s for s in data.sources if isinstance(s, NoisyLabels)), None)


def label_lines(data: Dataset) -> list[str]:
    """What a run says of its labels: the split, the noise as drawn, copies, and what makes an estimate weak."""
    source = source_of(data)
    if source is None:
        return []
    gold, wrong = int(source.trusted.sum()), source.labels != source.clean
    silver = len(source) - gold
    out = [
        f"labels: {gold} trusted (gold), {silver} others (silver), of which {int(wrong.sum())} were made wrong"
    ]
    count = copies(source.whole)
    if count:
        out.append(
            f"{count} images are copies of another by name: they have its label and its side of the split"
        )
    elif len(source.whole.sources) > 1:
        out.append(
            "warning: no image of one DATA has the name of an image of another; if they are filtered copies, the right "
            "labels leak: make them with `cuewise make`, which keeps the names"
        )
    counts = np.bincount(source.clean[source.trusted], minlength=len(source.classes))
    if gold and counts.min() < FEW:
        k, few = int(counts.argmin()), int(counts.min())
        out.append(
            f"warning: {source.classes[k]} has {few} trusted image{'s' * (few != 1)}: its row of the "
            f"confusion matrix is unreliable; {FEW} or more of each class are better"
        )
    return out
