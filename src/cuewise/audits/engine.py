"""The work of an audit: every view of every image through every model, from one decoding, streamed.

Nothing is written except what an interrupted audit resumes from.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.audits.answerer import Answerer, Ids
from cuewise.audits.change import CLEAN, Change, Copies, Input, Pixels
from cuewise.audits.keys import data_key
from cuewise.audits.saved import Rows, Saved
from cuewise.audits.scenes import Scene, Scenes
from cuewise.data import Dataset, Sample, Shown, auto_workers, ordered
from cuewise.encoders import Encoder
from cuewise.encoders.embed import Embeddings, evaluating
from cuewise.errors import UserError
from cuewise.progress import Progress

FORWARD = 128  # views in one forward pass
SAVE_SECONDS = 10.0
FEW = 1000  # views for which starting processes costs more than they gain


class Rendering(Protocol):
    """Picklable: the views of one image that a pass shows, by input size; see `Copies` and `PairViews`."""

    @property
    def inputs(self) -> tuple[Input, ...]: ...
    @property
    def count(self) -> int:
        """Views per image."""

    @property
    def asked(self) -> tuple[Change, ...]:
        """Changes whose copies are answered."""

    @property
    def key(self) -> str: ...
    def attached(self, number: int) -> Scene | None:
        """What the views of an image take beside its pixels; `number` is its place in the set."""

    def views(
        self, image: Pixels, name: str, number: int = 0, scene: Scene | None = None
    ) -> dict[str, Pixels]:
        """{input: V×S×S×3}; `scene` is what `attached` gives."""


class Looks(Protocol):
    """A model in a pass: what it takes, a key of its weights and of how it answers, and what it makes of views."""

    @property
    def input(self) -> Input: ...
    @property
    def key(self) -> str: ...
    def look(self, views: Tensor, rendering: Any) -> tuple[NDArray[np.float32], Ids]:
        """B×V×S×S×3 → what is kept of each image: numbers B×D, answers B×V'."""

    def on_cpu(self) -> Looks: ...


@dataclass
class Viewer:
    """An encoder, who answers for it, and a key of its weights and of how it answers.

    others  who else answers on the same copies: single prompts of a zero-shot classifier
    """

    encoder: Encoder
    answerer: Answerer | None
    key: str
    others: tuple[Answerer, ...] = ()

    @property
    def input(self) -> Input:
        return Input.of(self.encoder)

    def on_cpu(self) -> Viewer:
        return Viewer(self.encoder.cpu(), self.answerer, self.key, self.others)

    def look(self, views: Tensor, rendering: Copies) -> tuple[NDArray[np.float32], Ids]:
        """B×V×S×S×3 → features of the clean views with the cosine of each changed view to them B×(D+V') (B×0 without clean
        views), answers to the changed ones B×V', those of each of `others` behind them."""
        count, copies = views.shape[:2]
        device = next(self.encoder.parameters(), torch.zeros(())).device
        flat, parts = views.flatten(0, 1), []
        with evaluating(self.encoder):
            for start in range(0, len(flat), FORWARD):
                x = self.encoder.normalise(flat[start : start + FORWARD].to(device))
                parts.append(self.encoder(x).float().cpu())
        features = torch.cat(parts).numpy().reshape(count, copies, -1)
        clean = [i for i, c in enumerate(rendering.changes) if c == CLEAN]
        rest = [i for i, c in enumerate(rendering.changes) if c != CLEAN]
        answers = np.empty((count, 0), np.int64)
        if rest:
            assert self.answerer is not None
            asked = np.ascontiguousarray(features[:, rest]).reshape(count * len(rest), -1)
            answered = [a.say(asked).reshape(count, len(rest)) for a in (self.answerer, *self.others)]
            answers = np.concatenate(answered, 1)
        if not clean:
            return np.empty((count, 0), np.float32), answers
        own = np.ascontiguousarray(features[:, clean[0]])
        return np.concatenate([own, cosines(own, features[:, rest])], 1), answers


def cosines(own: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """B×D, B×V×D → B×V; 0 where a vector is 0."""
    sizes = np.linalg.norm(own, axis=1)[:, None] * np.linalg.norm(others, axis=2)
    return np.einsum("bd,bvd->bv", own, others) / np.where(sizes > 0, sizes, 1)


@dataclass
class Pass:
    """One pass over a set: which models look at which views of its images."""

    name: str
    data: Dataset
    viewers: Sequence[Looks]
    rendering: Rendering

    @property
    def images_per_batch(self) -> int:
        return max(1, FORWARD // self.rendering.count) if self.rendering.asked else FORWARD

    @property
    def views(self) -> int:
        return len(self.data) * self.views_per_image

    @property
    def views_per_image(self) -> int:
        return self.rendering.count * len(self.viewers)

    @property
    def key(self) -> str:
        """Of everything that the result depends on."""
        parts = [data_key(self.data), self.rendering.key, *(f"{v.key} {v.input.key}" for v in self.viewers)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def copies(
    name: str,
    data: Dataset,
    viewers: Sequence[Viewer],
    changes: tuple[Change, ...] = (CLEAN,),
    seed: int = 0,
    scenes: Scenes | None = None,
) -> Pass:
    """A pass over changed copies of the images."""
    return Pass(name, data, viewers, Copies(inputs_of(viewers), changes, seed, scenes))


def inputs_of(viewers: Sequence[Looks]) -> tuple[Input, ...]:
    """The distinct inputs that these models take."""
    return tuple(sorted({v.input for v in viewers}))


@dataclass(frozen=True)
class Rendered:
    """A rendering as the transform of a loader; image 0 of the part that is read is number `first` of the set."""

    rendering: Rendering
    first: int = 0

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        number = self.first + sample.index
        scene = self.rendering.attached(number)
        return Shown({**self.rendering.views(sample.image, sample.name, number, scene)})

    def warm_up(self) -> None:
        """Compile what the views need, on noise."""
        noise = np.random.default_rng(0).integers(0, 256, (96, 80, 3), dtype=np.uint8)
        self.rendering.views(noise, "noise")


@dataclass
class Outputs:
    """What one model made of a set: row r is image index[r]."""

    index: Ids
    features: NDArray[np.float32]  # of the clean views, or of all views of a pair
    answers: dict[Change, Ids]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    cosines: dict[Change, NDArray[np.float32]] = field(default_factory=dict)  # of changed to clean views
    others: list[dict[Change, Ids]] = field(default_factory=list)  # answers of the viewer's others

    def embedded(self, data: Dataset) -> Embeddings:
        labels = data.labels[self.index] if data.labels is not None else np.full(len(self.index), -1)
        return Embeddings(self.features, self.index, labels.astype(np.int64), self.skipped)


class Engine:
    """Makes passes on this machine; finished rows are kept in `saved`, `bar` shows the progress."""

    def __init__(self, saved: Saved | None = None, workers: int | None = None) -> None:
        self.saved, self.workers = saved, workers
        self.bar: Progress | None = None

    def run(self, work: Pass) -> list[Outputs]:
        """One pass; one Outputs per viewer."""
        key = work.key
        rows = self.saved.rows(key) if self.saved else []
        start = rows[-1].upto if rows else 0
        fresh: list[Rows] = []
        last = time.monotonic()
        try:
            for found in self.stream(work, start) if start < len(work.data) else ():
                fresh.append(found)
                if self.bar and found.upto > start:
                    self.bar.add((found.upto - start) * work.views_per_image, now=work.name)
                start = found.upto
                if self.saved and time.monotonic() - last > SAVE_SECONDS:
                    rows.append(self.saved.add(key, join(fresh)))
                    fresh, last = [], time.monotonic()
        finally:  # also when interrupted
            if fresh:
                done = join(fresh)
                rows.append(self.saved.add(key, done) if self.saved else done)
        return _seen(rows, work)

    def done(self, work: Pass) -> int:
        """Views of a pass that an interrupted audit has finished."""
        rows = self.saved.rows(work.key) if self.saved else []
        return rows[-1].upto * work.views_per_image if rows else 0

    def stream(self, work: Pass, start: int) -> Iterator[Rows]:
        """Rows in order, from image `start` on: worker processes make the copies, this one pushes them through."""
        part = work.data if start == 0 else work.data.select(np.arange(start, len(work.data)))
        render = Rendered(work.rendering, start)
        workers = self.workers
        if workers is None:
            workers = auto_workers() if len(part) * work.rendering.count > FEW else 0
        size = work.images_per_batch
        for batch in ordered(part, render, batch_size=size, workers=workers):
            if not len(batch.index):
                yield Rows.nothing(len(work.data), len(work.viewers), batch.skipped)
                continue
            found = [v.look(batch.views[v.input.key], work.rendering) for v in work.viewers]
            upto = min(len(work.data), start + (batch.step + 1) * size)
            index = batch.index.numpy() + start
            yield Rows(upto, index, [f for f, _ in found], [s for _, s in found], batch.skipped)

    def close(self) -> None:
        """Nothing to release here."""


def join(rows: Sequence[Rows]) -> Rows:
    """Rows that follow each other as one."""
    full = [r for r in rows if len(r.index)] or list(rows[:1])
    return Rows(
        rows[-1].upto,
        np.concatenate([r.index for r in full]),
        [np.concatenate(parts) for parts in zip(*(r.features for r in full))],
        [np.concatenate(parts) for parts in zip(*(r.answers for r in full))],
        [s for r in rows for s in r.skipped],
    )


def _seen(rows: Sequence[Rows], work: Pass) -> list[Outputs]:
    if not any(len(r.index) for r in rows):
        raise UserError(f"{work.name}: no image could be read; check the files of the set")
    whole = join(rows)
    asked = work.rendering.asked
    out = []
    for f, s in zip(whole.features, whole.answers):
        width = f.shape[1] - len(asked) if f.size else 0  # the last columns are cosines
        near = {c: f[:, width + k] for k, c in enumerate(asked)} if f.size else {}
        blocks = [s[:, k : k + len(asked)] for k in range(0, s.shape[1], max(1, len(asked)))]
        answered = [{c: block[:, k] for k, c in enumerate(asked)} for block in blocks] or [{}]
        kept = np.ascontiguousarray(f[:, :width])
        out.append(Outputs(whole.index, kept, answered[0], whole.skipped, near, answered[1:]))
    return out
