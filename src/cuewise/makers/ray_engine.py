"""The Ray engine: the same items made on a cluster; this process reads and writes, so that nodes share no disk.

Nodes need cuewise in the same version and nothing else. A task that loses its worker or node is tried again, first by Ray,
then here one image at a time; an image that keeps ending workers is skipped and listed.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any

import cuewise
from cuewise.cluster import connect, load_ray
from cuewise.data import BrokenImage
from cuewise.data.workers import prepare_worker
from cuewise.errors import UserError
from cuewise.makers.engine import DEATHS, ENDED, Done, WorkOrder, new_name
from cuewise.makers.layout import MakerTask
from cuewise.makers.render import Made, Renderer, SetSpec, broken, unreadable

CHUNK_SECONDS = 0.5
CHUNK_MOST = 32
AHEAD = 2  # tasks handed out for each core
RETRIES = 3  # by Ray itself, of a task whose worker was lost

_renderers: dict[str, Renderer] = {}  # of a worker process; few sets are made at once


def render_pieces(spec: SetSpec, pieces: list[MakerTask]) -> tuple[list[Made], float]:
    """Runs on the cluster: the finished items and the seconds they took."""
    key = repr(spec)
    if key not in _renderers:
        if spec.version != cuewise.__version__:
            raise UserError(
                f"this node has cuewise {cuewise.__version__}, the run was started with {spec.version}; "
                "install the same version everywhere, else images would differ"
            )
        prepare_worker(0)
        _renderers[key] = Renderer(spec)
    began = time.perf_counter()
    return [_renderers[key].make(piece) for piece in pieces], time.perf_counter() - began


def run(order: WorkOrder, items: Sequence[int], address: str | None) -> Generator[Done]:
    """Make all items on the cluster at `address`, or on a Ray instance of its own on this machine."""
    ray = load_ray(address)
    own = not ray.is_initialized()
    if own:
        connect(ray, address)
    pool = TaskPool(ray, order, items)
    try:
        yield from pool.run()
    finally:
        pool.stop()
        if own:
            ray.shutdown()


class TaskPool:
    """Tasks on the cluster and what is left."""

    def __init__(self, ray: Any, order: WorkOrder, items: Sequence[int]) -> None:
        self.ray, self.order = ray, order
        self.left = deque(items)
        self.alone: deque[int] = deque()  # lost once together with others: tried one at a time
        self.deaths: Counter[int] = Counter()
        self.pending: dict[Any, list[int]] = {}
        self.seconds = 0.0
        self.task = ray.remote(num_cpus=1, max_retries=RETRIES)(render_pieces)
        self.spec = ray.put(order.spec)
        self.journal = order.store.journal(new_name())

    def run(self) -> Iterator[Done]:
        while self.left or self.alone or self.pending:
            yield from self._hand_out()
            if not self.pending:
                continue
            ready, _ = self.ray.wait(list(self.pending), num_returns=1)
            for task in ready:
                yield from self._take(task, self.pending.pop(task))

    def stop(self) -> None:
        """Cancel what is under way."""
        for task in self.pending:
            with suppress(Exception):
                self.ray.cancel(task, force=True)
        self.pending.clear()
        self.journal.close()

    def _hand_out(self) -> Iterator[Done]:
        cores = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        while (self.left or self.alone) and len(self.pending) < AHEAD * cores:
            chunk = [self.alone.popleft()] if self.alone else self._chunk(cores)
            pieces = []
            for i in chunk:
                try:
                    pieces.append(self.order.layout.piece(i))
                except BrokenImage as error:
                    made = unreadable(self.order.spec.kind, i, self.order.layout.names(i), error)
                    yield self.order.finish(made, self.journal)
            if pieces:
                self.pending[self.task.remote(self.spec, pieces)] = [piece.index for piece in pieces]

    def _chunk(self, cores: int) -> list[int]:
        size = int(CHUNK_SECONDS / self.seconds) if self.seconds else 1
        size = max(1, min(size, CHUNK_MOST, -(-len(self.left) // (AHEAD * cores))))
        return [self.left.popleft() for _ in range(min(size, len(self.left)))]

    def _take(self, task: Any, chunk: list[int]) -> Iterator[Done]:
        try:
            found, seconds = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:  # raised by our own code on the node
            cause = getattr(error, "cause", None)
            raise UserError(str(cause if isinstance(cause, UserError) else error)) from error
        except self.ray.exceptions.RayError:
            yield from self._lost(chunk)
            return
        own = seconds / len(chunk)
        self.seconds = own if not self.seconds else 0.7 * self.seconds + 0.3 * own
        for made in found:
            yield self.order.finish(made, self.journal)

    def _lost(self, chunk: list[int]) -> Iterator[Done]:
        """Ray gave up on a task: its items go out again, alone; the one that ends workers is found and skipped."""
        if len(chunk) == 1:
            self.deaths[chunk[0]] += 1
            if self.deaths[chunk[0]] >= DEATHS:
                made = broken(self.order.spec.kind, chunk[0], self.order.layout.names(chunk[0]), ENDED)
                yield self.order.finish(made, self.journal)
                return
        self.alone.extend(chunk)
