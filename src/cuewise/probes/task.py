"""One call of `cuewise probe`: the encoder, the data and the options that a kind of probe takes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, open_data
from cuewise.data.class_names import alike, listed, same_but_for
from cuewise.data.overlap import check_overlap, refuse_same
from cuewise.data.parts import warn_of_set
from cuewise.encoders import Encoder
from cuewise.encoders.cached import cached_features
from cuewise.encoders.embed import Embeddings
from cuewise.errors import UserError
from cuewise.probes.class_map import ClassMap, Match, match, read_class_map
from cuewise.probes.corrupted_sets import ask_cells, by_class, corrupted_scores, is_corrupted
from cuewise.probes.dense.drawing import Shot
from cuewise.probes.dense.resample import resamples
from cuewise.probes.draws import both_ways, over_both
from cuewise.probes.probe import Features, Labels, Probe, held_out, top_hits
from cuewise.scores import Score

HELD_OUT = "held-out"


@dataclass
class Task:
    """What a kind of probe is asked to do; features are extracted once for all that need them."""

    encoder: Encoder
    train: list[str]
    test: list[str]
    seed: int = 0
    keep: bool = True  # features in the cache
    class_map_file: str | None = None
    size: int | None = None  # of the input, where the user gave one
    out: Path | None = None  # folder for checkpoints and pictures
    paired: bool = False  # keep scores over resampled images, to compare encoders by
    run: Path | None = None  # the folder of the run that the encoder is of, where it is of one
    tests: list[dict[str, Any]] = field(default_factory=list)  # how each test set was judged, for the result
    skipped: list[dict[str, str]] = field(default_factory=list)
    overlap: list[dict[str, Any]] = field(default_factory=list)  # training images in each test set
    draws: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # score → over resampled images
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    shots: list[Shot] = field(default_factory=list)

    @property
    def checkpoint(self) -> Path | None:
        """Where a kind that trains for long keeps what it has learned so far."""
        return None if self.out is None else self.out / "checkpoints" / "last.ckpt"

    @cached_property
    def fitted(self) -> Dataset:
        """The training set, labelled."""
        return labelled(self.train)

    @cached_property
    def test_sets(self) -> list[tuple[str, Dataset]]:
        return [(name, labelled([name])) for name in self.test]

    def check_sets(self) -> None:
        """Test images that are training images are counted and reported; a test set of nothing else is refused."""
        if not self.test:
            return
        train = open_data(self.train)
        for name in self.test:
            found = check_overlap(train, open_data(name))
            refuse_same(found, name)
            if found.count:
                self.warn(f"--test {name}: {found}")
            self.overlap.append({"test": name, **found.as_dict()})

    def check_halves(self, rest: NDArray[np.int64], held: NDArray[np.int64]) -> None:
        """The same of images that were held out of the training set: copies may stand on both sides."""
        found = check_overlap(self.fitted.select(rest), self.fitted.select(held))
        if found.count:
            self.warn(f"held out of --train: {found}; give --test DATA")
            self.overlap.append({"test": HELD_OUT, **found.as_dict()})

    @cached_property
    def class_map(self) -> ClassMap | None:
        if not self.class_map_file:
            return None
        sets = [data.classes for _, data in self.test_sets] or [self.fitted.classes]
        return read_class_map(Path(self.class_map_file), sets, self.fitted.classes)

    def features(self, data: Dataset, what: str, **how: Any) -> Embeddings:
        """Features of every readable image, from the cache where they are there."""
        return self.note(
            cached_features(self.encoder, data, label=f"embedding {what}", keep=self.keep, **how), data
        )

    def note(self, found: Embeddings, data: Dataset) -> Embeddings:
        """Keep what was skipped for the result."""
        self.note_skipped([data], dict(found.skipped))
        return found

    def note_skipped(self, sets: Sequence[Dataset], met: Mapping[str, str]) -> None:
        """Keep what sets left out, and what was met while reading, for the result."""
        files = [f for data in sets for f in data.fingerprint()["skipped"]]
        files += [{"path": path, "why": why} for path, why in met.items()]
        self.skipped += [f for f in files if f not in self.skipped]

    def resample(self, name: str, values: NDArray[Any], drawn: Sequence[NDArray[Any]] = ()) -> None:
        """The mean of one value per image over resamples, for differences between encoders.

        drawn: the values of the probe on each draw of its training images, the same draws for all encoders
        """
        x = values.astype(np.float64)
        own = np.stack([d.astype(np.float64) for d in drawn]) if len(drawn) else np.zeros((0, len(x)))
        self.draws[name] = both_ways(x, own, resamples(len(x), self.seed))

    def halves(self, labels: Any) -> tuple[Any, Any]:
        """Rows to fit on and rows held out for the score, where there is no test set."""
        rest, held = held_out(labels, np.random.default_rng([self.seed, 1]))
        if not len(held):
            raise UserError("one image per class leaves nothing to test on: give --test DATA")
        return rest, held

    def judged(self, name: str, found: Embeddings, classes: tuple[str, ...], train: tuple[str, ...]) -> Match:
        """Which images of a test set count; noted for the result."""
        got = match(found.labels, classes, train, self.class_map)
        self.note_test(name, len(got.rows), len(found.labels) - len(got.rows), got)
        return got

    def note_test(self, name: str, images: int, left_out: int, got: Match, **more: Any) -> None:
        """Keep how a test set was judged for the result."""
        entry = {"name": name, "images": images, "left_out_images": left_out, "classes": list(got.shared)}
        self.tests.append({**entry, "left_out_classes": list(got.dropped), **more})
        if left_out:
            total = len(got.shared) + len(got.dropped)
            twins = same_but_for(alike(got.dropped, self.fitted.classes))
            self.warn(
                f"{name}: the probe knows {len(got.shared)} of {total} classes ({listed(got.shared)}); {left_out} of "
                f"{images + left_out} images left out{f'; {twins}' if twins else ''}"
            )

    def warn(self, text: str) -> None:
        """A line on the terminal that the result keeps."""
        self.warnings.append(text)
        print(f"WARNING: {text}", file=sys.stderr, flush=True)

    def protocol(self, probe: Probe, images: int, classes: int, view: str = "center") -> str:
        """The probe's settings, the view it saw, and what it was fitted on."""
        space = self.encoder.card.cues.get("space")
        where = f"{view}{self.encoder.card.size}" + (f"/space_{space}" if space else "")
        return f"{probe.protocol}/{where}/{images}images_{classes}classes"


def classify(task: Task, probe: Probe, **how: Any) -> list[Score]:
    """Fit on the features of the training set, score on each test set (or on a fifth that was held out)."""
    found = task.features(task.fitted, "train", **how)
    classes = task.fitted.classes
    if task.test:
        probe.fit(found.features, found.labels)
        protocol = task.protocol(probe, len(found.labels), len(np.unique(found.labels)), _view(how))
        sets: Iterator[tuple[str, Embeddings, tuple[str, ...]]] = (
            (name, task.features(data, name, **how), data.classes)
            for name, data in task.test_sets
            if not is_corrupted(data)
        )
    else:
        rest, held = task.halves(found.labels)
        task.check_halves(found.index[rest], found.index[held])
        probe.fit(found.features[rest], found.labels[rest])
        protocol = task.protocol(probe, len(rest), len(np.unique(found.labels)), _view(how))
        sets = iter([(HELD_OUT, rows_of(found, held), classes)])
    scores: list[Score] = []

    def embed(part: Dataset, what: str) -> Embeddings:
        return cached_features(task.encoder, part, label=what, keep=False, **how)

    for name, data in task.test_sets if task.test else ():
        if is_corrupted(data):
            scores += judged_corrupted(task, name, data, embed, probe.predict_proba, protocol)
    for name, images, test_classes in sets:
        got = task.judged(name, images, test_classes, classes)
        X = images.features[got.rows]

        def score(what: str, k: int, X: Features = X, got: Match = got) -> Score:
            return probe.score(X, got.labels, what, k, got.right)

        drawn = probe.drawn(X)
        for found_score in accuracies(score, name, len(classes), f"{protocol}{got}"):
            k = 5 if found_score.name.startswith("top5/") else 1
            hits = [top_hits(p, got.labels, k, got.right) for p in drawn]
            scores.append(over_both(found_score, [float(h.mean()) for h in hits]))
        if task.paired and type(probe).score is Probe.score:
            whole = top_hits(probe.predict_proba(X), got.labels, 1, got.right)
            task.resample(f"top1/{name}", whole, [top_hits(p, got.labels, 1, got.right) for p in drawn])
    return scores


def judged_corrupted(
    task: Task,
    name: str,
    data: Dataset,
    look: Callable[[Dataset, str], Embeddings],
    answer: Callable[[Features], Features],
    protocol: str,
) -> list[Score]:
    """Scores of a set that lies on disk as ImageNet-C does; what is seen of its millions of images is not kept.

    look    a part of the set and its name → what `answer` turns into probabilities
    """
    noted: list[Match] = []

    def ask(part: Dataset, cell: str) -> tuple[Labels, NDArray[np.float64]]:
        found = task.note(look(part, f"{name}: {cell}"), part)
        got = match(found.labels, part.classes, task.fitted.classes, task.class_map)
        noted.append(got)
        right = top_hits(answer(found.features[got.rows]), got.labels, 1, got.right)
        return found.index[got.rows], right.astype(np.float64)

    cells = ask_cells(data, ask)
    corruptions = sorted({corruption for corruption, _ in cells.cells})
    task.note_test(name, len(cells.hits), cells.left_out, noted[0], corruptions=corruptions)
    size = task.encoder.card.size
    return corrupted_scores(cells, name, f"{protocol}{noted[0]}", len(task.fitted.classes), size)


def accuracies(score: Callable[[str, int], Score], where: str, classes: int, protocol: str) -> list[Score]:
    """top-1, and top-5 where there are more than five classes."""
    tops = (1, 5) if classes > 5 else (1,)
    return [dataclasses.replace(score(f"top{k}/{where}", k), protocol=protocol) for k in tops]


def rows_of(found: Embeddings, rows: Any) -> Embeddings:
    """Some rows of a set."""
    return Embeddings(found.features[rows], found.index[rows], found.labels[rows])


def _view(how: dict[str, Any]) -> str:
    return "convmap_center" if how else "center"


def labelled(specs: list[str]) -> Dataset:
    """A data set with labels, or an error that says how to give them."""
    data = by_class(open_data(specs))
    if data.labels is None:
        raise UserError(f"{', '.join(specs)} has no labels: put the images into one folder per class")
    warn_of_set(data, specs)
    return data
