"""Random kills, full disks and two writers over the verbs that write: is the result the one of a quiet run, to the bit?

    python benchmarks/chaos.py RESULTS.jsonl [COMMAND…] [--trials 6] [--seed 0] [--minutes 90] [--faults group …]
    python benchmarks/chaos.py RESULTS.jsonl --table

Each trial gives a command a fault at a random moment and then gives the same command again, until it ends well:

    group    SIGKILL to the command and all its processes
    parent   SIGKILL to the command alone; its processes must end by themselves
    worker   SIGKILL to one process that the command started
    disk     no file may grow beyond a random size; the command must say so in one line
    two      a second, equal command; one of the two must be refused, or find the work done

Outcomes: `survived` (the last command exits with 0 and the result is the same to the bit), `refused` (the same, after a
command that ended in one line with exit code 2), `missed` (the fault came after the end: not counted), or what went wrong.
One line per trial is appended to RESULTS.jsonl; a second call makes the trials that are not there yet. Commands are
forked from a process that has imported cuewise, so that a trial takes seconds. Not part of the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from chaos_commands import Command, commands, prepare

FAULTS = ("group", "parent", "worker", "disk", "two")
KILLS = ("group", "parent", "worker")
AGAIN = 4  # commands after the fault, at most
LONGEST = 400.0  # seconds of one command; longer counts as a hang
ORPHANS = 30.0  # seconds after which no process of a killed command may be left


class Running:
    """A command in a forked process and a session of its own; its messages pass a pipe, which no disk limit touches."""

    def __init__(self, words: list[str], log: Path, most: int | None = None) -> None:
        self.log = log
        self.code: int | None = None
        with log.open("wb") as target:
            self.writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=target, start_new_session=True)
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


def fault(command: Command, kind: str, out: Path, seconds: float, rng: random.Random) -> str:
    """Give the command and its fault: survived, refused, missed, or what went wrong."""
    log = out.with_suffix(".log")
    if kind == "disk":
        run = Running(command.line(out, True), log, most=int(10 ** rng.uniform(2.5, 5.5)))
        return judged(run, run.wait())
    run = Running(command.line(out, True), log)
    time.sleep(rng.uniform(0, seconds))
    if kind == "two":
        other = Running(command.line(out, False), out.with_suffix(".other"))
        codes = sorted([run.wait(), other.wait()])
        if "Traceback" in run.said + other.said or codes not in ([0, 0], [0, 2]):
            return f"exits {codes} of two writers: {last_line(run)} | {last_line(other)}"
        return "refused" if codes == [0, 2] else "survived"
    if run.poll() is not None:
        return "missed"
    if kind == "worker":
        return judged(run, run.wait()) if kill_one(run, rng) else "missed"
    below = run.children()
    if kind == "group":
        run.kill()
        return "survived"
    with contextlib.suppress(ProcessLookupError):
        os.kill(run.pid, signal.SIGKILL)
    run.wait()
    left = orphans(below)
    for process in left:
        process.kill()
    return f"{len(left)} processes left behind" if left else "survived"


def judged(run: Running, code: int) -> str:
    """What a command that was not killed itself may do: end well, or in one line."""
    if code not in (0, 2) or "Traceback" in run.said:
        return f"exit {code}: {last_line(run)}"
    return "survived" if code == 0 else "refused"


def last_line(run: Running) -> str:
    return (run.said.strip().splitlines() or [""])[-1][:160]


def same(command: Command, out: Path, want: str) -> bool:
    with contextlib.suppress(OSError, ValueError, KeyError):
        return command.digest(out) == want
    return False


def trial(command: Command, kind: str, want: str, seconds: float, out: Path, rng: random.Random) -> str:
    """The outcome of one fault and of the commands after it."""
    out.mkdir() if command.file else None
    found = fault(command, kind, out, seconds, rng)
    if found not in ("survived", "refused"):
        return found
    for _ in range(AGAIN):
        there = out.exists() and any(out.iterdir())
        run = Running(command.line(out, not there), out.with_suffix(".log"))
        code = run.wait()
        if "Traceback" in run.said:
            return f"a traceback: {last_line(run)}"
        if code == 0 or (code == 2 and same(command, out, want)):  # it was done before the fault
            break
    else:
        return f"exit {code} again: {last_line(run)}"
    return found if same(command, out, want) else "another result"


def plan(names: list[str], kinds: list[str], trials: int, seed: int) -> Iterator[tuple[str, str, int, str]]:
    """All trials, commands and faults in turn, so that a part of them is balanced."""
    for number in range(trials):
        for kind in kinds:
            for name in names:
                yield name, kind, number, f"{seed} {name} {kind} {number}"


def campaign(names: list[str], given: argparse.Namespace, place: Path) -> None:
    """The trials that RESULTS does not hold yet, until the time is over."""
    known, end = commands(place), time.monotonic() + 60 * given.minutes
    done = {(r["command"], r["fault"], r["number"], r["seed"]) for r in rows_of(given.results)}
    quiet: dict[str, tuple[float, str]] = {}
    for name, kind, number, seed in plan(names, given.faults, given.trials, given.seed):
        command = known[name]
        if time.monotonic() > end or (name, kind, number, given.seed) in done:
            continue
        if kind == "worker" and not command.workers:
            continue
        if name not in quiet:
            quiet[name] = quiet_run(name, command, place)
        seconds, want = quiet[name]
        began, own = time.monotonic(), Path(tempfile.mkdtemp(dir=place))
        outcome = trial(command, kind, want, seconds, own / "out", random.Random(seed))
        row: dict[str, Any] = {"command": name, "fault": kind, "number": number, "seed": given.seed}
        row |= {"outcome": outcome, "seconds": round(time.monotonic() - began, 1)}
        with given.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        if outcome in ("survived", "refused", "missed"):
            shutil.rmtree(own, ignore_errors=True)
        else:
            print(json.dumps({**row, "kept": str(own)}), flush=True)


def quiet_run(name: str, command: Command, place: Path) -> tuple[float, str]:
    """Seconds and digest of a run without fault; twice, since what differs by itself proves nothing."""
    found = []
    for k in (1, 2):
        out = place / f"quiet-{name.replace(' ', '-')}-{k}"
        out.mkdir() if command.file else None
        began = time.monotonic()
        run = Running(command.line(out, True), out.with_suffix(".log"))
        if run.wait():
            raise SystemExit(f"{name} fails without any fault: {run.said[-400:]}")
        found.append((time.monotonic() - began, command.digest(out)))
    if found[0][1] != found[1][1]:
        raise SystemExit(f"{name}: two quiet runs differ")
    print(f"{name}: {found[1][0]:.1f} s", flush=True)
    return found[1]


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Counts for each command; faults that came too late are left out."""
    lines = ["| command | kills | full disks | two writers | survived | refused, then survived | wrong |"]
    lines += ["|---|---|---|---|---|---|---|"]
    counted = [r for r in rows if r["outcome"] != "missed"]
    for name in [*dict.fromkeys(r["command"] for r in counted), "all"]:
        own = [r for r in counted if name in (r["command"], "all")]
        faults, outcomes = Counter(r["fault"] for r in own), Counter(r["outcome"] for r in own)
        wrong = len(own) - outcomes["survived"] - outcomes["refused"]
        cells = [name, sum(faults[k] for k in KILLS), faults["disk"], faults["two"]]
        lines.append("| " + " | ".join(map(str, [*cells, outcomes["survived"], outcomes["refused"], wrong])) + " |")
    wrong_ones = [r for r in counted if r["outcome"] not in ("survived", "refused")]
    return "\n".join([*lines, *(json.dumps(r, ensure_ascii=False) for r in wrong_ones)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = list(commands(Path()))
    parser.add_argument("results", type=Path)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(known))
    parser.add_argument("--trials", type=int, default=6, help="for each command and fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=90.0, help="start no trial after that")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--table", action="store_true", help="only show the counts")
    given = parser.parse_args()
    given.results = given.results.resolve()
    if not given.table:
        import_all()
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            place = Path(folder)
            os.chdir(place)

            def run(words: list[str]) -> None:
                made = Running(words, place / "prepare.log")
                if made.wait():
                    raise SystemExit(f"{' '.join(words)}: {made.said[-400:]}")

            prepare(place, run)
            campaign(given.commands or known, given, place)
    rows = rows_of(given.results)
    print(table(rows))
    return 1 if any(r["outcome"] not in ("survived", "refused", "missed") for r in rows) else 0


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


if __name__ == "__main__":
    sys.exit(main())
