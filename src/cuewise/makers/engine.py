"""The local engine: worker processes that read, make and write by themselves; the parent only hands out numbers.

Workers are forked where that exists (the index and compiled kernels are shared, nothing touches a GPU). A worker that
is killed is replaced and its remaining items are given out again; an item that ends its worker three times is skipped.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from cuewise.data import BrokenImage
from cuewise.data.workers import prepare_worker
from cuewise.errors import UserError
from cuewise.files import write_error
from cuewise.makers.journal import Journal, Records
from cuewise.makers.layout import Layout
from cuewise.makers.render import Made, Renderer, SetSpec, broken, unreadable
from cuewise.makers.store import AGAIN, Store

CHUNK_SECONDS = 0.3  # of work handed out at once: little to lose, few messages
CHUNK_MOST = 64
DEATHS = 3  # of workers with one item, before it is left out
ENDED = f"ended its worker process {DEATHS} times (most often: not enough memory)"


@dataclass(frozen=True)
class Done:
    """One finished item."""

    index: int
    size: int  # bytes written
    broken: str | None = None


@dataclass(frozen=True, eq=False)
class WorkOrder:
    """Everything a worker needs."""

    spec: SetSpec
    layout: Layout
    store: Store

    def make(self, renderer: Renderer, i: int) -> Made:
        """Item i, not yet written."""
        try:
            piece = self.layout.piece(i)
        except BrokenImage as error:
            return unreadable(self.spec.kind, i, self.layout.names(i), error)
        return renderer.make(piece)

    def finish(self, made: Made, journal: Journal) -> Done:
        """Write what was made."""
        try:
            self.store.put(made, journal)
        except OSError as error:
            raise write_error(error, self.store.folder, AGAIN) from error
        return Done(made.index, sum(len(data) for _, data in made.files), made.broken)


def run(order: WorkOrder, items: Sequence[int], workers: int) -> Generator[Done]:
    """Make all items; with no workers in this process, else in that many processes, in any order."""
    if workers == 0:
        renderer, journal = Renderer(order.spec), order.store.journal(new_name())
        for i in items:
            yield order.finish(order.make(renderer, i), journal)
        return
    pool = WorkerPool(order, items)
    try:
        yield from pool.run(min(workers, len(items)))
    finally:
        pool.stop()


def new_name() -> str:
    """A name for a journal that no run or process has used: sorted by time."""
    return f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(3).hex()}"


@dataclass(eq=False)
class Worker:
    """A worker process as the parent sees it."""

    process: Any
    connection: Connection
    journal: Journal
    chunk: list[int]


class WorkerPool:
    """The workers, what each is doing, and what is left."""

    def __init__(self, order: WorkOrder, items: Sequence[int]) -> None:
        self.order = order
        self.left = deque(items)
        self.workers: list[Worker] = []
        self.deaths: Counter[int] = Counter()
        self.in_a_row = 0
        self.seconds = 0.0  # per item, lately; 0 before the first
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        self.context: Any = multiprocessing.get_context(method)

    def run(self, count: int) -> Iterator[Done]:
        for _ in range(count):
            self._start()
        while any(worker.chunk for worker in self.workers):
            ready = wait([worker.connection for worker in self.workers])
            for worker in [w for w in self.workers if w.connection in ready]:
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    yield from self._replace_dead(worker)
                    continue
                if isinstance(answer, UserError):
                    raise answer
                yield from self._take(worker, *answer)
            for worker in self.workers:
                if not worker.chunk and self.left:  # given back by one that died
                    self._feed(worker)

    def stop(self) -> None:
        """End all workers; what they were writing is not visible, and what is visible is noted."""
        for worker in self.workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()
        self.workers.clear()

    def _start(self) -> None:
        ours, theirs = self.context.Pipe()
        journal = self.order.store.journal(new_name())
        inherited = [ours, *(worker.connection for worker in self.workers)]
        close = inherited if self.context.get_start_method() == "fork" else []
        process = self.context.Process(target=serve, args=(self.order, theirs, journal, close), daemon=True)
        process.start()
        theirs.close()
        worker = Worker(process, ours, journal, [])
        self.workers.append(worker)
        self._feed(worker)

    def _feed(self, worker: Worker) -> None:
        size = int(CHUNK_SECONDS / self.seconds) if self.seconds else 1
        # the last chunks are small: all end together
        fair = -(-len(self.left) // (2 * len(self.workers) or 1))
        size = max(1, min(size, CHUNK_MOST, fair))
        worker.chunk = [self.left.popleft() for _ in range(min(size, len(self.left)))]
        if worker.chunk:
            with suppress(OSError):  # it is dead, as the next recv will show
                worker.connection.send(worker.chunk)

    def _take(self, worker: Worker, done: list[Done], seconds: float) -> Iterator[Done]:
        self.in_a_row = 0
        own = seconds / len(done)
        self.seconds = own if not self.seconds else 0.7 * self.seconds + 0.3 * own
        self._feed(worker)
        yield from done

    def _replace_dead(self, worker: Worker) -> Iterator[Done]:
        """A worker died: keep what it finished, give out the rest again, start another."""
        worker.connection.close()
        worker.process.join()
        self.workers.remove(worker)
        self.in_a_row += 1
        records = Records([worker.journal.path], len(self.order.layout))
        rest = []
        for i in worker.chunk:
            if i in records and self.order.store.done(i, records):
                yield Done(i, sum(row["bytes"] or 0 for row in records.rows(i)))
            else:
                rest.append(i)
        records.close()
        if rest:
            self.deaths[rest[0]] += 1  # items are made in order, so it was this one
            if self.deaths[rest[0]] >= DEATHS:
                yield self._give_up(rest.pop(0))
        self.left.extendleft(reversed(rest))
        if self.in_a_row > 3 * DEATHS:
            raise UserError(
                f"worker processes ended {self.in_a_row} times in a row (exit code {worker.process.exitcode}; "
                "most often: not enough memory); try fewer --workers; the same command resumes"
            )
        self._start()

    def _give_up(self, i: int) -> Done:
        made = broken(self.order.spec.kind, i, self.order.layout.names(i), ENDED)
        journal = self.order.store.journal(new_name())
        try:
            return self.order.finish(made, journal)
        finally:
            journal.close()


def serve(order: WorkOrder, connection: Connection, journal: Journal, close: list[Connection]) -> None:
    """A worker: makes the items it is sent until the parent is gone."""
    prepare_worker(0)
    for other in close:  # else a dead parent's end of the pipe would stay open here
        other.close()
    parent = os.getppid()
    renderer = Renderer(order.spec)
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        began, done = time.perf_counter(), []
        for i in chunk:
            if os.getppid() != parent:
                return
            try:
                done.append(order.finish(order.make(renderer, i), journal))
            except UserError as error:
                connection.send(error)
                return
        connection.send((done, time.perf_counter() - began))
