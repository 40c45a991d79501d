"""A model's own classifier as a probe on its features, its outputs gathered into the classes of a data set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import SPEC
from cuewise.errors import UserError
from cuewise.probes import Probe
from cuewise.probes.probe import Features, Labels

ClassMap = Mapping[str, Sequence[int]]  # class → outputs of the classifier
IMAGENET = 1000
FORM = '{"cat": [281, 282], "dog": [151]} (class → outputs) or ["cat", "dog"] (one name an output), as JSON'


class Head(Probe):
    """softmax over all outputs, then for each class the mean over its outputs; already fitted.

    The mean, because with sums a class of a hundred outputs would win by their number (Geirhos et al. 2019).
    """

    def __init__(self, head: nn.Module, classes: ClassMap, source: str) -> None:
        self.head, self.source = head, source
        self.classes = {name: tuple(rows) for name, rows in classes.items() if len(rows)}

    @property
    def protocol(self) -> str:
        return f"own classifier, {self.source}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        weight = next(self.head.parameters(), torch.zeros(()))
        with torch.inference_mode():
            logits = self.head(torch.from_numpy(np.asarray(X, np.float32)).to(weight.device)).float()
            p = logits.flatten(1).softmax(1)
            return torch.stack([p[:, list(rows)].mean(1) for rows in self.classes.values()], 1).cpu().numpy()


def load_model(spec: str | nn.Module, *, size: int | None, classifier: bool | None) -> Encoder:
    """The model with its classifier where it has a trained one.

    classifier: None keeps one if there is one; True takes what a package.module:factory model returns for its logits.
    """
    if isinstance(spec, nn.Module):
        return load_encoder(spec, size=size, head=classifier is not False)
    match = SPEC.match(spec)
    if classifier is not False and match and match["weights"] and not match["arch"].startswith("cuewise/"):
        try:
            return load_encoder(spec, size=size, head=True)
        except UserError:  # weights of a backbone alone; if it is something else, the next line says so
            pass
    encoder = load_encoder(spec, size=size, head=bool(classifier) and match is None)
    factory = not match and not Path(spec).exists() and ":" in spec  # package.module:factory
    if classifier and encoder.head is None and factory:
        encoder.head = nn.Identity()
    return encoder


def outputs(encoder: Encoder) -> int:
    """How many classes the classifier tells apart."""
    assert encoder.head is not None
    device = next(encoder.parameters(), torch.zeros(())).device
    with torch.inference_mode():
        return int(encoder.head(torch.zeros(1, encoder.dim, device=device)).flatten(1).shape[1])


def read_class_map(file: Path) -> dict[str, list[int]]:
    """class → outputs, from a JSON file."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no class map {file}: give {FORM}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the class map {file} ({error}); give {FORM}") from None
    if isinstance(content, list) and all(isinstance(c, str) for c in content):
        content = {name: [i for i, other in enumerate(content) if other == name] for name in content}
    whole = isinstance(content, dict) and all(
        isinstance(v, list) and all(type(i) is int and i >= 0 for i in v) for v in content.values()
    )
    if not whole or not content:
        raise UserError(f"{file} is no class map: give {FORM}")
    return {str(k): list(v) for k, v in content.items()}


def map_for(classes: Sequence[str], count: int, given: ClassMap | None) -> tuple[ClassMap, str] | None:
    """Which outputs stand for which class of a set with these classes, and how that is called; None if unknown.

    Without a given map a classifier of 1000 outputs is taken for ImageNet's, and the classes may be the 16 categories,
    WordNet ids, or output numbers.
    """
    if given is not None:
        most = max((i for rows in given.values() for i in rows), default=-1)
        if most >= count:
            raise UserError(f"--class-map names output {most}, but the classifier has {count} (from 0 on)")
        return (given, "classes of --class-map") if set(classes) & set(given) else None
    if count != IMAGENET:
        return None
    for found, name in (
        (imagenet16(), "mean over the outputs of each of 16 categories"),
        (wordnet(), "ImageNet-1k"),
    ):
        if set(classes) & set(found):
            return found, name
    numbers = {str(i): [i] for i in range(count)}
    return (numbers, "output numbers") if set(classes) and set(classes) <= set(numbers) else None


@cache
def imagenet16() -> dict[str, list[int]]:
    """The 16 categories of the cue-conflict stimuli as ImageNet-1k outputs (Geirhos et al. 2019)."""
    content: dict[str, list[int]] = json.loads(Path(__file__).with_name("imagenet16.json").read_text())
    return content


@cache
def wordnet() -> dict[str, list[int]]:
    """WordNet id → output, in ImageNet's usual order."""
    from timm.data import ImageNetInfo  # type: ignore[attr-defined]

    return {name: [i] for i, name in enumerate(ImageNetInfo().label_names())}
