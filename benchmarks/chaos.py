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
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos_commands import Command, commands, prepare
from chaos_processes import Running, import_all, kill_one, last_line, orphans

FAULTS = ("group", "parent", "worker", "disk", "two")
KILLS = ("group", "parent", "worker")
AGAIN = 4  # commands after the fault, at most


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
    note = place / f"quiet-{name.replace(' ', '-')}.json"
    if note.exists():
        seconds, want = json.loads(note.read_text())
        return float(seconds), str(want)
    found = []
    for k in (1, 2):
        out = note.with_name(f"{note.stem}-{k}")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir() if command.file else None
        began = time.monotonic()
        run = Running(command.line(out, True), out.with_suffix(".log"))
        if run.wait():
            raise SystemExit(f"{name} fails without any fault: {run.said[-400:]}")
        found.append((time.monotonic() - began, command.digest(out)))
    if found[0][1] != found[1][1]:
        raise SystemExit(f"{name}: two quiet runs differ")
    note.write_text(json.dumps(found[1]))
    return found[1]


def ready(place: Path) -> None:
    """Prepare what the commands read, once."""
    if (place / "two" / "report.html").exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    os.chdir(place)

    def run(words: list[str]) -> None:
        made = Running(words, place / "prepare.log")
        if made.wait():
            raise SystemExit(f"{' '.join(words)}: {made.said[-400:]}")

    prepare(place, run)


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
        lines.append(
            "| " + " | ".join(map(str, [*cells, outcomes["survived"], outcomes["refused"], wrong])) + " |"
        )
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
    parser.add_argument(
        "--place", type=Path, help="folder for what the commands read, kept for the next call"
    )
    parser.add_argument("--table", action="store_true", help="only show the counts")
    given = parser.parse_args()
    given.results = given.results.resolve()
    if not given.table:
        import_all()
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            place = (given.place or Path(folder)).resolve()
            ready(place)
            os.chdir(place)
            campaign(given.commands or known, given, place)
    rows = rows_of(given.results)
    print(table(rows))
    return 1 if any(r["outcome"] not in ("survived", "refused", "missed") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
