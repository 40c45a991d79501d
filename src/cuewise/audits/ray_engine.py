"""The passes of an audit on a Ray cluster: this process reads and collects,
nodes decode images, make changed copies and run the models.

Nodes need cuewise in the same version and nothing else: no shared disk.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import cuewise
from cuewise.audits.change import Copies
from cuewise.audits.engine import Engine, Looks, Pass, Rendering
from cuewise.audits.saved import Rows, Saved
from cuewise.audits.scenes import Scene
from cuewise.cluster import connect, load_ray
from cuewise.data import BrokenImage, Image, decode
from cuewise.data.workers import prepare_worker
from cuewise.errors import UserError

AHEAD = 2  # tasks handed out for each core
RETRIES = 3  # by Ray itself, of a task whose worker was lost
VIEWS = 256  # in a task, about

_jobs: dict[str, Job] = {}  # of a worker process


@dataclass(frozen=True)
class SentImage:
    """An image on its way to a node: encoded where it is stored so, or why it cannot be read."""

    index: int
    name: str
    data: bytes | Image | None
    why: str = ""
    scene: Scene | None = None


@dataclass(frozen=True)
class Job:
    """What every task of a pass shares."""

    version: str
    rendering: Rendering
    viewers: Sequence[Looks]


def look_at(packed: bytes, key: str, upto: int, pieces: list[SentImage]) -> Rows:
    """Runs on the cluster."""
    if key not in _jobs:
        prepare_worker(0)
        _jobs.clear()
        _jobs[key] = pickle.loads(packed)  # made by the process that started the audit
    job = _jobs[key]
    if job.version != cuewise.__version__:
        raise UserError(
            f"this node has cuewise {cuewise.__version__}, the audit was started with {job.version}; install the same"
        )
    return judged(job, upto, pieces)


def judged(job: Job, upto: int, pieces: list[SentImage]) -> Rows:
    """Decode, change, look."""
    views, index, skipped = [], [], []
    for piece in pieces:
        try:
            views.append(job.rendering.views(_image(piece), piece.name, piece.index, piece.scene))
            index.append(piece.index)
        except BrokenImage as error:
            skipped.append((error.name, error.why))
    if not views:
        return Rows.nothing(upto, len(job.viewers), skipped)
    stacked = {k: torch.from_numpy(np.stack([v[k] for v in views])) for k in views[0]}
    found = [v.look(stacked[v.input.key], job.rendering) for v in job.viewers]
    return Rows(upto, np.array(index, np.int64), [f for f, _ in found], [s for _, s in found], skipped)


def _image(piece: SentImage) -> Image:
    if piece.data is None:
        raise BrokenImage(piece.name, piece.why)
    return decode(piece.data, piece.name) if isinstance(piece.data, bytes) else piece.data


class RayEngine(Engine):
    """An engine whose passes run on the cluster at `address`, or on a Ray instance of its own on this machine."""

    def __init__(self, saved: Saved | None = None, address: str | None = None) -> None:
        super().__init__(saved)
        self.ray = load_ray(address)
        self.own = not self.ray.is_initialized()
        if self.own:
            connect(self.ray, address)

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()

    def stream(self, work: Pass, start: int) -> Iterator[Rows]:
        """Tasks in order, several under way."""
        viewers = [v.on_cpu() for v in work.viewers]
        packed = pickle.dumps(Job(cuewise.__version__, portable(work.rendering), viewers))
        key, job = hashlib.sha256(packed).hexdigest(), self.ray.put(packed)
        task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(look_at)
        pending: deque[Any] = deque()
        size = max(1, VIEWS // work.rendering.count)
        most = AHEAD * max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        try:
            for first in range(start, len(work.data), size):
                upto = min(len(work.data), first + size)
                pieces = [_piece(work, i) for i in range(first, upto)]
                pending.append(task.remote(job, key, upto, pieces))
                if len(pending) >= most:
                    yield self._take(pending.popleft())
            while pending:
                yield self._take(pending.popleft())
        finally:
            for left in pending:
                with suppress(Exception):
                    self.ray.cancel(left, force=True)

    def _take(self, task: Any) -> Rows:
        try:
            rows: Rows = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:  # raised by our own code on the node
            cause = getattr(error, "cause", None)
            raise UserError(str(cause if isinstance(cause, UserError) else error)) from error
        except self.ray.exceptions.RayError as error:
            raise UserError(
                f"the cluster lost a task {RETRIES + 1} times ({str(error).splitlines()[0]}); "
                "give the same command again to resume"
            ) from error
        return rows


def portable(rendering: Rendering) -> Rendering:
    """Without the sets that only this machine can read: what they give travels with each image."""
    return replace(rendering, scenes=None) if isinstance(rendering, Copies) else rendering


def _piece(work: Pass, i: int) -> SentImage:
    name = work.data.name(i)
    try:
        data = work.data.read(i)
        image = data if data is not None else work.data.image(i)
        return SentImage(i, name, image, scene=work.rendering.attached(i))
    except BrokenImage as error:
        return SentImage(i, name, None, error.why)
