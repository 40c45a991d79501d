"""The processes of benchmarks/chaos.py: commands that are forked from one which has imported cuewise, and their ends."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

LONGEST = 400.0  # seconds of one command; longer counts as a hang
ORPHANS = 30.0  # seconds after which no process of a killed command may be left


class Running:
    """A command in a forked process and a session of its own; its messages pass a pipe, which no disk limit touches."""

    def __init__(self, words: list[str], log: Path, most: int | None = None) -> None:
        self.log = log
        self.code: int | None = None
        with log.open("wb") as target:
            self.writer = subprocess.Popen(
                ["cat"], stdin=subprocess.PIPE, stdout=target, start_new_session=True
            )
        assert self.writer.stdin is not None
        self.pid = os.fork()
        if self.pid == 0:
            run_here(words, self.writer.stdin.fileno(), log.with_suffix(".cache"), most)
        self.writer.stdin.close()

    def wait(self) -> int:
        """Its exit code; a hang is ended and counts as code 99."""
        until = time.monotonic() + LONGEST
        while self.poll() is None:
            if time.monotonic() > until:
                self.kill()
                self.code = 99
            time.sleep(0.02)
        return int(self.code or 0)

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in self.children():  # workers in sessions of their own
            with contextlib.suppress(psutil.Error):
                process.kill()
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def children(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []

    @property
    def said(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that is left holds the pipe
            self.writer.wait(5)
        return self.log.read_text(errors="replace")


def run_here(words: list[str], stderr: int, cache: Path, most: int | None) -> None:
    """In the forked process: the shell's own entry, then the end."""
    code = 1
    try:
        os.setsid()
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.environ["CUEWISE_CACHE"] = str(cache)  # features of this trial alone
        if most is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        from cuewise.cli import main

        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def kill_one(run: Running, rng: random.Random) -> bool:
    """One process below the command, as soon as there is one."""
    while run.poll() is None:
        if found := run.children():
            with contextlib.suppress(psutil.Error):
                rng.choice(found).kill()
                return True
        time.sleep(0.01)
    return False


def orphans(found: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run some time after their parent."""
    until = time.monotonic() + ORPHANS
    while found and time.monotonic() < until:
        found = [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        time.sleep(0.1)
    return found


def last_line(run: Running) -> str:
    return (run.said.strip().splitlines() or [""])[-1][:160]


def import_all() -> None:
    """Import what commands import, and keep compiled kernels in one place for all of them."""
    from cuewise.compiled import keep_kernels

    keep_kernels()
    import cuewise.audits.run
    import cuewise.encoders.export
    import cuewise.methods
    import cuewise.probes.run
    import cuewise.report.folders
    import cuewise.studies.run
    import cuewise.train.pretrain  # noqa: F401
