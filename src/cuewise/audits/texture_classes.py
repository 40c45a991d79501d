"""Which classes does the model know by their texture alone?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answers import Answers, decisions_table, known_labels
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.cues.texture import texture_cue
from cuewise.data import Dataset, open_data
from cuewise.encoders.embed import embed_dataset
from cuewise.scores import Score, proportion
from cuewise.views import center

BIN = 0.025  # width of a bin of per-class accuracy
SUFFICIENT, NEAR_NONE = (
    0.5,
    BIN,
)  # a class above the first is told by texture alone; below the second it is not
IMAGES = 2000  # texture copies made
LARGEST = 128  # side of the image a texture is made of
SHOWN = 8  # classes with examples

Pixels = NDArray[np.uint8]


@audit("texture_classes", "per-class accuracy on texture copies; classes for which texture is enough")
def texture_classes(subject: Subject) -> Finding:
    """Accuracy on textures synthesised from the test images; the embedded classes have textures of their own."""
    said = embedded_textures(subject) if subject.embedded else copied_textures(subject)
    if said is None:
        return Finding()
    right = said.correct
    rows = per_class(said)
    accuracies = np.array([r[2] for r in rows])
    enough, none = int((accuracies > SUFFICIENT).sum()), int((accuracies < NEAR_NONE).sum())
    out = Finding(
        [
            proportion("texture_classes/accuracy", int(right.sum()), len(right), said.protocol),
            _share("sufficient_share", enough, len(rows), f"above {SUFFICIENT:.0%}", said.protocol),
            _share("near_none_share", none, len(rows), f"below {NEAR_NONE:.1%}", said.protocol),
        ]
    )
    out.tables["texture_classes"] = {
        "title": "Accuracy from texture alone, by class",
        "columns": ["class", "images", "accuracy", "low", "high", "most often said"],
        "rows": rows,
    }
    table = decisions_table(said, "Texture copies, image by image")
    table["pairs"] = {"texture_classes/accuracy": "correct"}
    out.tables["texture_classes/decisions"] = table
    out.figures["texture_classes"] = {
        "title": "Classes by their accuracy from texture alone",
        "kind": "histogram",
        "xlabel": "accuracy on texture copies",
        "ylabel": "classes",
        "series": [{"name": subject.name, **histogram(accuracies)}],
    }
    out.galleries["texture_classes"] = examples(subject, said, [str(r[0]) for r in rows])
    return out


def _share(name: str, count: int, classes: int, bound: str, protocol: str) -> Score:
    return proportion(
        f"texture_classes/{name}", count, classes, f"classes with an accuracy {bound}; {protocol}"
    )


def histogram(accuracies: NDArray[np.float64]) -> dict[str, list[float]]:
    """Edges 2.5 points apart and the number of classes between them; a class at an edge belongs to the bin above."""
    bins = round(1 / BIN)
    place = np.minimum((accuracies / BIN + 1e-9).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    return {"x": (np.arange(bins + 1) * BIN).round(6).tolist(), "y": counts.astype(float).tolist()}


def per_class(said: Answers) -> list[list[Any]]:
    """class, images, accuracy with its interval and the commonest answer; the classes best known by texture first."""
    rows: list[list[Any]] = []
    for k in np.unique(said.labels):
        own = said.labels == k
        share = proportion("", int(said.correct[own].sum()), int(own.sum()), "")
        common = said.classes[int(np.bincount(said.response[own]).argmax())]
        rows.append([said.classes[k], int(own.sum()), share.value, share.low, share.high, common])
    return sorted(rows, key=lambda r: (-r[2], str(r[0])))


def embedded_textures(subject: Subject) -> Answers:
    """The embedded textures by themselves; texture k belongs to class k."""
    name = "shapes:texture_only"
    data = open_data(f"{name}?n=800&part=test&size={subject.encoder.card.size}")
    found = subject.features(data, name)
    labels = np.asarray(data.columns["texture"], np.int64)[found.index]
    return _ask(subject, name, data, found.index, labels, found.features, name)


def copied_textures(subject: Subject) -> Answers | None:
    """Texture copies of the first labelled test set that shares classes with the subject."""
    for name, data in subject.test:
        wanted = known_labels(data, subject.train.classes)
        rows = np.flatnonzero(wanted >= 0) if wanted is not None else np.zeros(0, np.int64)
        if wanted is None or not len(rows):
            continue
        rng = np.random.default_rng(subject.seed)
        rows = np.sort(rng.permutation(rows)[:IMAGES])
        part = data.select(rows)
        found = embed_dataset(
            subject.encoder,
            part,
            transform=TextureView(subject.encoder.card.size, subject.seed),
            label=f"{subject.name}: texture copies of {name}",
        )
        labels = wanted[rows][found.index]
        said = f"texture copies (fast synthesis) of {len(labels)} images of {name}"
        return _ask(subject, name, part, found.index, labels, found.features, said)
    return None


def _ask(
    subject: Subject,
    name: str,
    data: Dataset,
    index: NDArray[np.int64],
    labels: NDArray[np.int64],
    features: NDArray[np.float32],
    what: str,
) -> Answers:
    proba = np.asarray(subject.probe.predict_proba(features), np.float64)
    return Answers(
        name, data, index, labels, proba, subject.train.classes, f"{subject.probe.protocol}; {what}"
    )


class TextureView:
    """Picklable view: the texture of an image, from a seed of its own, at the model's size."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed

    def __call__(self, image: Pixels, rng: np.random.Generator, index: int) -> dict[str, Pixels]:
        return {"image": texture_copy(image, self.size, self.seed, index)}

    def warm_up(self) -> None:
        """Compile what it needs."""
        texture_copy(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8), self.size, 0, 0)


def texture_copy(image: Pixels, size: int, seed: int, index: int) -> Pixels:
    """size×size texture of the image, made at 128 pixels at most and enlarged."""
    small = center(image, min(size, LARGEST))
    return center(texture_cue(small, np.random.default_rng((seed, index)), fast=True), size)


def examples(subject: Subject, said: Answers, classes: list[str]) -> dict[str, Any]:
    """Pairs of an image and its texture copy for the classes best known by texture (the texture alone for shapes)."""
    items = []
    for n, name in enumerate(classes[:SHOWN]):
        own = np.flatnonzero(said.labels == said.classes.index(name))
        row = int(own[np.argmax(said.correct[own])])
        i = int(said.index[row])
        size, image = subject.encoder.card.size, said.data.image(i)
        shown = {"texture": image} if subject.embedded else {
            "image": center(image, size), "texture": texture_copy(image, size, subject.seed, i)
        }  # fmt: skip
        for kind, picture in shown.items():
            items.append(
                {
                    "image": subject.picture(picture, f"texture-{n}-{kind}"),
                    "of": said.image_name(row),
                    "row": name,
                    "caption": name
                    if kind == "image"
                    else f"{name}: said {said.classes[said.response[row]]}",
                    "badge": "" if kind == "image" else "right" if said.correct[row] else "wrong",
                    "alt": f"{'texture of' if kind == 'texture' else 'an image of'} {name}",
                }
            )
    layout = "tiles" if subject.embedded else "rows"
    return {"title": "Classes best known by their texture", "layout": layout, "items": items}
