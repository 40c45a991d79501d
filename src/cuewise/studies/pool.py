"""Worker processes with one thread each, one job after the other; a killed worker loses the steps since its checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from cuewise.errors import UserError

TRIES = 3  # of a job whose worker dies
PATIENCE = 120.0  # seconds for workers to write a checkpoint after Ctrl-C


class StudyWorker:
    """One process and the number of its current job."""

    def __init__(self, threads: int, log: Path) -> None:
        names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self.log: IO[str] = log.open("a", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuewise.studies.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
            start_new_session=True,  # Ctrl-C reaches the parent alone, which asks the workers to stop
        )
        self.job: int | None = None

    def give(self, number: int, line: str) -> None:
        self.job = number
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # dead already: `answer` will find out

    def answer(self) -> dict[str, Any] | None:
        """Its answer; None if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def close(self) -> None:
        """End of input: an idle worker ends, a busy one writes a checkpoint first."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def wait(self) -> None:
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def run_all(
    lines: Sequence[str],
    workers: int,
    threads: int,
    log: Path,
    done: Callable[[int, dict[str, Any]], None],
    tick: Callable[[list[int]], None] = lambda running: None,
) -> None:
    """Give every line to a worker and every answer to `done`, in the order of arrival; `tick` is called each second."""
    waiting, tries = list(range(len(lines))), [0] * len(lines)
    waiting.reverse()
    running: list[StudyWorker] = []
    selector = selectors.DefaultSelector()

    def start() -> None:
        worker = StudyWorker(threads, log)
        running.append(worker)
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        feed(worker)

    def feed(worker: StudyWorker) -> None:
        worker.job = None
        if waiting:
            worker.give(number := waiting.pop(), lines[number])

    try:
        for _ in range(min(workers, len(lines))):
            start()
        while any(w.job is not None for w in running):
            for key, _ in selector.select(timeout=1.0):
                worker: StudyWorker = key.data
                number, answer = worker.job, worker.answer()
                if answer is not None and number is not None:
                    raise_error(answer, log)
                    done(number, answer)
                    feed(worker)
                    continue
                selector.unregister(key.fileobj)
                running.remove(worker)
                worker.close()
                worker.wait()
                if number is not None:
                    tries[number] += 1
                    _report_death(worker.process.returncode, tries[number], log)
                    waiting.append(number)
                    start()
            tick([w.job for w in running if w.job is not None])
    finally:
        for worker in running:
            worker.close()
        for worker in running:
            worker.wait()
        selector.close()


def raise_error(answer: dict[str, Any], log: Path) -> None:
    if "error" in answer:
        if answer["user_error"]:
            raise UserError(answer["error"])
        raise RuntimeError(f"an arm failed (see {log}):\n{answer['error']}")


def _report_death(code: int, tries: int, log: Path) -> None:
    what = f"a worker was ended by {'signal ' + str(-code) if code < 0 else 'exit code ' + str(code)}"
    if tries >= TRIES:
        raise UserError(f"{what} {tries} times in a row; see {log}. Out of memory? Try fewer --jobs")
    print(f"cuewise: {what}; its arm resumes from its last checkpoint", file=sys.stderr, flush=True)
    time.sleep(0.2)
