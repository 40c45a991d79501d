"""The work of an audit: every copy of every image through every model, from one decoding, streamed.

Nothing is written but what an interrupted audit goes on from.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cuewise.audits.answerer import Answerer, Ids
from cuewise.audits.change import CLEAN, Change, Eye, Rendering
from cuewise.audits.keys import data_key
from cuewise.audits.saved import Rows, Saved
from cuewise.data import Dataset, auto_workers, ordered
from cuewise.encoders import Encoder
from cuewise.encoders.embed import Embedded, evaluating
from cuewise.errors import UserError
from cuewise.progress import Progress

FORWARD = 128  # views in one forward pass
SAVE_SECONDS = 10.0
FEW = 1000  # views for which starting processes costs more than they gain


@dataclass
class Viewer:
    """A model that looks: its encoder, who answers for it, and a key of its weights and of how it answers."""

    encoder: Encoder
    answerer: Answerer | None
    key: str

    @property
    def eye(self) -> Eye:
        return Eye.of(self.encoder)

    def look(self, views: Tensor, changes: Sequence[Change]) -> tuple[NDArray[np.float32], Ids]:
        """B×V×S×S×3 → features of the clean views B×D (B×0 without), answers to the changed ones B×V'."""
        count, copies = views.shape[:2]
        device = next(self.encoder.parameters(), torch.zeros(())).device
        flat, parts = views.flatten(0, 1), []
        with evaluating(self.encoder):
            for start in range(0, len(flat), FORWARD):
                x = self.encoder.normalise(flat[start : start + FORWARD].to(device))
                parts.append(self.encoder(x).float().cpu())
        features = torch.cat(parts).numpy().reshape(count, copies, -1)
        clean = [i for i, c in enumerate(changes) if c == CLEAN]
        rest = [i for i, c in enumerate(changes) if c != CLEAN]
        said = np.empty((count, 0), np.int64)
        if rest:
            assert self.answerer is not None
            asked = np.ascontiguousarray(features[:, rest]).reshape(count * len(rest), -1)
            said = self.answerer.say(asked).reshape(count, len(rest))
        none = np.empty((count, 0), np.float32)
        return (np.ascontiguousarray(features[:, clean[0]]) if clean else none), said


@dataclass
class Work:
    """One pass over a set: who looks at which copies."""

    name: str
    data: Dataset
    viewers: Sequence[Viewer]
    changes: tuple[Change, ...] = (CLEAN,)
    seed: int = 0

    @property
    def rendering(self) -> Rendering:
        return Rendering(tuple(sorted({v.eye for v in self.viewers})), self.changes, self.seed, self.data)

    @property
    def images_a_batch(self) -> int:
        return max(1, FORWARD // len(self.changes))

    @property
    def views(self) -> int:
        return len(self.data) * len(self.changes) * len(self.viewers)

    @property
    def key(self) -> str:
        """Of all that the result follows from."""
        parts = [data_key(self.data), str(self.seed)]
        parts += [c.key for c in self.changes] + [f"{v.key} {v.eye.key}" for v in self.viewers]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@dataclass
class Seen:
    """What one model saw of a set: row r is image index[r]."""

    index: Ids
    features: NDArray[np.float32]  # of the clean views
    said: dict[Change, Ids]
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def embedded(self, data: Dataset) -> Embedded:
        labels = data.labels[self.index] if data.labels is not None else np.full(len(self.index), -1)
        return Embedded(self.features, self.index, labels.astype(np.int64), self.skipped)


class Engine:
    """Does passes, here or on a cluster; what is done is kept in `saved`, and `bar` tells how far it is."""

    def __init__(self, saved: Saved | None = None, workers: int | None = None) -> None:
        self.saved, self.workers = saved, workers
        self.bar: Progress | None = None

    def run(self, work: Work) -> list[Seen]:
        """One pass; one Seen a viewer."""
        key = work.key
        rows = self.saved.rows(key) if self.saved else []
        start = rows[-1].upto if rows else 0
        fresh: list[Rows] = []
        last = time.monotonic()
        try:
            for found in self.stream(work, start) if start < len(work.data) else ():
                fresh.append(found)
                self._tell(work, found.upto - start)
                start = found.upto
                if self.saved and time.monotonic() - last > SAVE_SECONDS:
                    rows.append(self.saved.add(key, join(fresh)))
                    fresh, last = [], time.monotonic()
        finally:  # also when interrupted
            if fresh:
                done = join(fresh)
                rows.append(self.saved.add(key, done) if self.saved else done)
        return _seen(rows, work)

    def done(self, work: Work) -> int:
        """Views of a pass that an interrupted audit has left."""
        rows = self.saved.rows(work.key) if self.saved else []
        return rows[-1].upto * len(work.changes) * len(work.viewers) if rows else 0

    def stream(self, work: Work, start: int) -> Iterator[Rows]:
        """Rows in order, from image `start` on: worker processes make the copies, this one pushes them through."""
        part = work.data if start == 0 else work.data.select(np.arange(start, len(work.data)))
        render = Rendering(work.rendering.eyes, work.changes, work.seed, part)
        workers = self.workers
        if workers is None:
            workers = auto_workers() if len(part) * len(work.changes) > FEW else 0
        size = work.images_a_batch
        for batch in ordered(part, render, batch_size=size, workers=workers):
            if not len(batch.index):
                yield Rows.nothing(len(work.data), work, batch.skipped)
                continue
            found = [v.look(batch.views[v.eye.key], work.changes) for v in work.viewers]
            upto = min(len(work.data), start + (batch.step + 1) * size)
            index = batch.index.numpy() + start
            yield Rows(upto, index, [f for f, _ in found], [s for _, s in found], batch.skipped)

    def close(self) -> None:
        """Nothing to let go of here."""

    def _tell(self, work: Work, images: int) -> None:
        if self.bar and images:
            self.bar.add(images * len(work.changes) * len(work.viewers), now=work.name)


def join(rows: Sequence[Rows]) -> Rows:
    """Rows that follow each other as one."""
    full = [r for r in rows if len(r.index)] or list(rows[:1])
    return Rows(
        rows[-1].upto,
        np.concatenate([r.index for r in full]),
        [np.concatenate(parts) for parts in zip(*(r.features for r in full))],
        [np.concatenate(parts) for parts in zip(*(r.said for r in full))],
        [s for r in rows for s in r.skipped],
    )


def _seen(rows: Sequence[Rows], work: Work) -> list[Seen]:
    if not any(len(r.index) for r in rows):
        raise UserError(f"{work.name}: no image could be read; mend the set")
    whole = join(rows)
    rest = [c for c in work.changes if c != CLEAN]
    return [
        Seen(whole.index, f, {c: s[:, k] for k, c in enumerate(rest)}, whole.skipped)
        for f, s in zip(whole.features, whole.said)
    ]
