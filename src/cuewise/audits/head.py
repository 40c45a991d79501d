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
from torch import Tensor, nn

from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import HUB, SPEC, load_whole
from cuewise.errors import UserError
from cuewise.probes import Probe
from cuewise.probes.class_map import shipped_maps
from cuewise.probes.probe import Features, Labels
from cuewise.probes.wordnet import imagenet_classes, plain

ClassMap = Mapping[
    str, Sequence[int | str]
]  # class → outputs of a classifier, or training classes of a probe
IMAGENET = 1000
FORM = (
    '{"cat": [281, 282], "dog": [151]} (class → outputs of a classifier, or training classes of a probe by name or number) '
    'or ["cat", "dog"] (one name per output), as JSON'
)


class Head(Probe):
    """softmax over all outputs, then for each class the mean over its outputs; already fitted.

    The mean, because with sums a class of a hundred outputs would win by their number (Geirhos et al. 2019).
    """

    def __init__(self, head: nn.Module, classes: ClassMap, source: str) -> None:
        self.head, self.source = head, source
        self.classes = {name: tuple(map(int, rows)) for name, rows in classes.items() if len(rows)}

    @property
    def protocol(self) -> str:
        return f"own classifier, {self.source}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        return self

    @torch.inference_mode()
    def logits(self, X: Features) -> Tensor:
        """N×outputs, on the classifier's device."""
        weight = next(self.head.parameters(), torch.zeros(()))
        found: Tensor = self.head(torch.from_numpy(np.asarray(X, np.float32)).to(weight.device))
        return found.float().flatten(1)

    @torch.inference_mode()
    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        p = self.logits(X).softmax(1)
        return torch.stack([p[:, list(rows)].mean(1) for rows in self.classes.values()], 1).cpu().numpy()


def load_model(spec: str | nn.Module, *, size: int | None, classifier: bool | None) -> Encoder:
    """The model with its classifier where it has a trained one.

    classifier: None keeps one if there is one; True takes what a package.module:factory model returns for its logits.
    """
    if isinstance(spec, nn.Module) or spec.startswith(HUB):
        return load_encoder(spec, size=size, head=classifier is not False)
    match, saved = SPEC.match(spec), Path(spec).exists()
    if classifier is not False and (match or saved):
        return load_whole(spec, size=size)
    encoder = load_encoder(spec, size=size, head=bool(classifier) and match is None)
    factory = not match and not saved and ":" in spec  # package.module:factory
    if classifier and encoder.head is None and factory:
        encoder.head = nn.Identity()
    return encoder


def read_class_map(file: Path) -> dict[str, list[int | str]]:
    """class → outputs or training classes, from a JSON file, or of a map that comes with cuewise."""
    if str(file) in (known := shipped_maps()):
        return {name: list(ids) for name, ids in known[str(file)].items()}
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no class map {file}: give {FORM}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the class map {file} ({error}); give {FORM}") from None
    if isinstance(content, list) and all(isinstance(c, str) for c in content):
        content = {name: [i for i, other in enumerate(content) if other == name] for name in content}
    whole = isinstance(content, dict) and all(
        isinstance(v, list) and all(isinstance(i, str) or (type(i) is int and i >= 0) for i in v)
        for v in content.values()
    )
    if not whole or not content:
        raise UserError(f"{file} is not a class map: give {FORM}")
    return {str(k): list(v) for k, v in content.items()}


def map_for(classes: Sequence[str], count: int, given: ClassMap | None) -> tuple[ClassMap, str] | None:
    """Which outputs stand for which class of a set with these classes, and how that is called; None if unknown.

    Without a given map a classifier of 1000 outputs is taken for ImageNet's, and the classes may be the 16 categories,
    WordNet ids, ImageNet's names, or output numbers.
    """
    if given is not None:
        known = {name: rows[0] for name, rows in wordnet().items()} if count == IMAGENET else {}
        found = {name: _numbers(rows, known, count, "output") for name, rows in given.items()}
        return (found, "classes of --class-map") if set(classes) & set(found) else None
    if count != IMAGENET:
        return None
    for found, name in (
        (imagenet16(), "mean over the outputs of each of 16 categories"),
        (wordnet(), "ImageNet-1k"),
    ):
        if set(classes) & set(found):
            return found, name
    if by_name := named_outputs(classes):
        return by_name
    numbers = {str(i): [i] for i in range(count)}
    return (numbers, "output numbers") if set(classes) and set(classes) <= set(numbers) else None


def output_names(count: int, given: ClassMap | None) -> list[str]:
    """The names by which outputs of a classifier are known."""
    if given is not None:
        return list(given)
    return [*imagenet16(), *wordnet()] if count == IMAGENET else []


def groups_for(
    classes: Sequence[str], train: Sequence[str], given: ClassMap | None
) -> tuple[dict[str, list[int]], str] | None:
    """Which training classes of a probe stand for which class of a set with these classes; None where names agree.

    A given map comes first. Without one, WordNet ids among the training classes are known to belong to the 16 categories
    of the cue-conflict stimuli. A category without a training class is left out: it has no mean.
    """
    place = {name: i for i, name in enumerate(train)}
    if given is not None and set(classes) & set(given):
        known = set(wordnet()) - set(place)  # classes of ImageNet that were not trained
        trained = {name: [row for row in rows if row not in known] for name, rows in given.items()}
        found = {name: _numbers(rows, place, len(train), "training class") for name, rows in trained.items()}
        source = "--class-map"
    elif set(classes) & set(train) or not set(classes) & set(imagenet16()) or not set(train) & set(wordnet()):
        return None
    else:
        ids = list(wordnet())
        found = {
            name: [place[ids[i]] for i in rows if ids[i] in place] for name, rows in imagenet16().items()
        }
        source = "WordNet ids"
    whole = {name: rows for name, rows in found.items() if rows}
    return (whole, f"{len(whole)} of {len(found)} categories by {source}") if whole else None


def _numbers(rows: Sequence[int | str], known: Mapping[str, int], count: int, what: str) -> list[int]:
    """Outputs or training classes by number or name; one that does not exist is refused."""
    out = []
    for row in rows:
        number = known.get(row, -1) if isinstance(row, str) else row
        if not 0 <= number < count:
            raise UserError(f"--class-map names {what} {row!r}, but there are {count} (numbered from 0)")
        out.append(number)
    return out


class Grouped(Probe):
    """A fitted probe whose training classes are gathered into categories: the mean probability over each one's classes.

    The mean, because with sums the category of most training classes would win by their number.
    """

    def __init__(self, probe: Probe, groups: Mapping[str, Sequence[int]], source: str) -> None:
        self.probe, self.source = probe, source
        self.groups = {name: tuple(rows) for name, rows in groups.items()}

    @property
    def protocol(self) -> str:
        return f"{self.probe.protocol}, mean over the training classes of each of {self.source}"

    def fit(self, X: Features, y: Labels, groups: Labels | None = None) -> Self:
        return self

    def predict_proba(self, X: Features) -> NDArray[np.float32]:
        return self._gather(self.probe.predict_proba(X))

    def drawn(self, X: Features) -> list[NDArray[np.float32]]:
        return [self._gather(p) for p in self.probe.drawn(X)]

    def _gather(self, p: NDArray[np.float32]) -> NDArray[np.float32]:
        p = np.pad(p, ((0, 0), (0, max(0, 1 + max(map(max, self.groups.values())) - p.shape[1]))))
        return np.stack([p[:, list(rows)].mean(1) for rows in self.groups.values()], 1).astype(np.float32)


@cache
def imagenet16() -> dict[str, list[int]]:
    """The 16 categories of the cue-conflict stimuli as ImageNet-1k outputs (Geirhos et al. 2019)."""
    content: dict[str, list[int]] = json.loads(Path(__file__).with_name("imagenet16.json").read_text())
    return content


def named_outputs(classes: Sequence[str]) -> tuple[ClassMap, str] | None:
    """Outputs of classes that are called as ImageNet calls its own (brain_coral), where at least half of them are; the
    other outputs stay in the choice, by their WordNet ids."""
    found = {name: rows for name in classes if (rows := imagenet_names().get(plain(name)))}
    if not found or 2 * len(found) < len(classes):
        return None
    taken = {row for rows in found.values() for row in rows}
    rest = {name: rows for name, rows in wordnet().items() if rows[0] not in taken}
    return {**found, **rest}, f"ImageNet-1k by name ({len(found)} of {len(classes)} classes)"


@cache
def imagenet_names() -> dict[str, list[int]]:
    """Each name of an ImageNet class, synonyms too → its outputs; some names stand for two (crane)."""
    found: dict[str, list[int]] = {}
    for i, names in enumerate(imagenet_classes().values()):
        for name in names:
            found.setdefault(plain(name), []).append(i)
    return found


@cache
def wordnet() -> dict[str, list[int]]:
    """WordNet id → output, in ImageNet's usual order."""
    return {name: [i] for i, name in enumerate(imagenet_classes())}
