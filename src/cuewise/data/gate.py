"""A gate for workers on cores that training needs: they compute while it is open, while a batch is waited for.

All threads of a training step wait for the slowest one, so a worker that takes a tenth of a core takes more than a tenth of
a step, at any priority. Behind the gate workers take what they compute and no more, and share it among all cores.
A worker that mostly waits itself, for a slow disk or a network, takes no core from anyone and passes at any time.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator

FORGET = 0.97  # of the past, per image
AWAKE = 0.5  # the share of its time that a worker computes or could, at least, if it is to wait at the gate


class Gate:
    """Open while a pipe holds a byte: there is no lock that a killed worker could leave held."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._past = self._awake = 0.0  # seconds, of this worker
        self._schedule: int | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Let workers pass for a while."""
        self.open()
        try:
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 1)

    def open(self) -> None:
        """Let workers pass from now on."""
        os.write(self._write, b".")

    def enter(self) -> None:
        """In a forked worker: this end only waits; when the other end is gone, the gate is open."""
        os.close(self._write)
        with contextlib.suppress(OSError):  # Linux alone has it
            self._schedule = os.open("/proc/self/schedstat", os.O_RDONLY)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """In a worker, around the making of one image: wait until the gate is open."""
        if self._schedule is None or self._awake >= AWAKE * self._past:
            waiting = select.poll()
            waiting.register(self._read, select.POLLIN)
            waiting.poll()
        begun, awake = self._clocks()
        yield
        ended, awake_by_then = self._clocks()
        self._past = FORGET * self._past + ended - begun
        self._awake = FORGET * self._awake + awake_by_then - awake

    def _clocks(self) -> tuple[float, float]:
        """Time, and how much of it this process computed or was only kept from it by others that did."""
        if self._schedule is None:
            return 0.0, 0.0
        _, queued, _ = os.pread(self._schedule, 100, 0).split()  # nanoseconds ran and ready to run; turns
        return time.perf_counter(), time.process_time() + int(queued) * 1e-9

    def close(self) -> None:
        """After all workers have ended."""
        os.close(self._read)
        os.close(self._write)
