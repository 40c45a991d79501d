"""The first of two phases of a label correction: learn the noisy labels, then estimate the confusion on trusted images."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cuewise.config import Config
from cuewise.data import Dataset
from cuewise.encoders.embed import embed_dataset
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.methods import Method
from cuewise.objectives.corrected import anchor_confusion, confusion_of, gold_confusion
from cuewise.train.labels import source_of
from cuewise.views import contact_sheet

FOLDER, FILE, PICTURE = "phase1", "confusion.json", "confusion.png"
ANOTHER = 1_000_003  # added to the seed of the first phase, so that the second starts from other weights
CELL = 160  # pixels of a drawn matrix


def first_config(config: Config) -> Config:
    """The run of the first phase: plain cross-entropy on the silver images, with the same split and noise."""
    asked = config.labels
    seed = config.seed if asked.seed is None else asked.seed
    labels = replace(asked, correction="none", restart=None, seed=seed)
    if asked.gold is not None:
        labels = replace(labels, use="silver")
    elif not asked.noise:
        labels = replace(labels, seed=None)
    other = config.seed if asked.restart == "same" else config.seed + ANOTHER
    return replace(config, labels=labels, seed=other)


def silver_of(data: Dataset) -> Dataset:
    """The images whose labels may be wrong; all, where none is trusted."""
    source = source_of(data)
    return data if source is None or not source.trusted.any() else data.select(~source.trusted)


def write_confusion(method: Method, data: Dataset, config: Config, out: Path) -> None:
    """RUN/confusion.json and confusion.png: the confusion estimated from plain views, beside the true one where noise was added.

    glc: mean answer on the trusted images of each class. forward: answer on the surest silver image of each class.
    """
    source, classifier = source_of(data), method.own_classifier()
    assert classifier is not None
    gold = config.labels.correction == "glc"
    assert source is not None or not gold
    part = data.select(source.trusted) if gold and source is not None else silver_of(data)
    found = embed_dataset(method.encoder, part, label=None)
    with torch.inference_mode():
        where = next(classifier.parameters()).device
        p = classifier(torch.from_numpy(found.features).to(where)).softmax(1).cpu()
    estimated = gold_confusion(p, torch.from_numpy(found.labels)) if gold else anchor_confusion(p)
    unseen = sorted(set(range(len(data.classes))) - set(found.labels.tolist())) if gold else []
    if unseen:
        raise UserError(
            f"no trusted image of {data.classes[unseen[0]]} can be read: fix it, or list another one"
        )
    true = None
    if source is not None and config.labels.noise:
        silver = ~source.trusted
        clean, given = torch.from_numpy(source.clean[silver]), torch.from_numpy(source.labels[silver])
        true = confusion_of(clean, given, len(data.classes)).float()
    content: dict[str, Any] = {
        "correction": config.labels.correction,
        "classes": list(data.classes),
        "images": len(found.labels),
        "estimated": estimated.tolist(),
        "true": None if true is None else true.tolist(),
        "mean_error": None if true is None else float((estimated - true).abs().mean()),
    }
    draw(estimated, true).save(out / PICTURE)
    write_json(out / FILE, content)  # written last, so that an existing file is complete


def read_confusion(out: Path) -> Tensor:
    """Ĉ as the first phase left it."""
    return torch.tensor(json.loads((out / FILE).read_text())["estimated"])


def draw(estimated: Tensor, true: Tensor | None) -> Any:
    """Matrices as squares from white (0) to dark blue (1), row = class, column = label."""
    columns = {"estimated": estimated} | ({} if true is None else {"true": true})
    light, dark = np.array([255.0, 255, 255]), np.array([16.0, 42, 110])
    pictures = {}
    for name, matrix in columns.items():
        shade = matrix.double().numpy()[..., None] ** 0.5  # small shares are to be seen
        pixels = (light + shade * (dark - light)).round().astype(np.uint8)
        times = max(1, CELL // len(pixels))
        pictures[name] = pixels.repeat(times, 0).repeat(times, 1)[None]
    return contact_sheet(pictures)
