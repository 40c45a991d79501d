"""Random kills, full disks and two writers over the verbs that write folders: is the result the one of a quiet run?

    python benchmarks/chaos.py [pretrain make audit compare reproduce] [--trials 10] [--seed 0] [--faults group worker disk two]

Each trial gives a command a fault at a random moment and then gives the same command again, until it ends well:

    group    SIGKILL to the command and all its processes
    worker   SIGKILL to one process that the command started
    disk     no file may grow beyond a random size; the command must say so in one line
    two      a second, equal command; one of the two must be refused, or find the work done

A trial is survived if the last command exits with 0, no command shows a traceback, and the result is the same to the bit.
Prints counts as JSON, then as a table. Not part of the tests: a trial takes two to three times the time of its command.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

FAULTS = ("group", "worker", "disk", "two")
AGAIN = 4  # commands after the fault, at most
SET = "shapes:aligned?n=192&size=32"


@dataclass(frozen=True)
class Verb:
    """A command without its folder, what it takes to give it again, and a digest of its result."""

    words: list[str]
    digest: Callable[[Path], str]
    again: tuple[str, ...] = ()
    out: str = "--out"

    def command(self, folder: Path, first: bool) -> list[str]:
        place = [self.out, str(folder)] if self.out else [str(folder)]
        return [sys.executable, "-m", "cuewise", *self.words, *place, *(() if first else self.again)]


def of_files(*patterns: str) -> Callable[[Path], str]:
    """All files that fit, by name and content."""

    def digest(folder: Path) -> str:
        found = hashlib.sha256()
        for file in sorted({f for p in patterns for f in folder.glob(p) if f.is_file()}):
            found.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
        return found.hexdigest()

    return digest


def of_run(folder: Path) -> str:
    """Losses of all steps, and the encoder."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [(r["step"], r["train/loss"]) for r in rows if "train/loss" in r]
    return json.dumps(losses) + of_files("encoder.safetensors")(folder)


def of_audit(folder: Path) -> str:
    return json.dumps(json.loads((folder / "audit.json").read_text())["scores"])


def of_comparison(folder: Path) -> str:
    return str((folder / "report.html").is_file())


def verbs(place: Path) -> dict[str, Verb]:
    """Small commands; `place` holds a run and two audits that some of them read."""
    small = ["--model", "cuewise/resnet-tiny?width=8", "--size", "32", "--batch-size", "32", "--workers", "2"]
    pretrain = ["pretrain", SET, *small, "--method", "simclr", "--epochs", "4", "--set", "loop.log_every=1"]
    audit = ["audit", str(place / "run"), "--train", SET, "--test", "shapes:aligned?n=64&size=32&part=test"]
    audit += ["--only", "accuracy,color,rotation", "--limit", "40", "--workers", "2"]
    study = ["reproduce", "ns-alpha", "--epochs", "1", "--seeds", "1", "--arms", "α = 0", "--jobs", "2"]
    return {
        "pretrain": Verb(pretrain, of_run, ("--resume",)),
        "make": Verb(["make", "anisotropic", f"{SET}&size=64", "--workers", "2"], of_files("*/*.png", "manifest.jsonl"), out=""),
        "audit": Verb(audit, of_audit),
        "compare": Verb(["compare", str(place / "one"), str(place / "two")], of_comparison, ("--overwrite",)),
        "reproduce": Verb(study, of_files("arms/*/measured/*.json", "arms/*/encoder.safetensors")),
    }  # fmt: skip


def prepare(place: Path, wanted: list[str]) -> None:
    """What the verbs read."""
    known = verbs(place)
    if "audit" in wanted or "compare" in wanted:
        subprocess.run(known["pretrain"].command(place / "run", True), check=True, stderr=subprocess.DEVNULL)
    if "compare" in wanted:
        subprocess.run(known["audit"].command(place / "one", True), check=True, stderr=subprocess.DEVNULL)
        shutil.copytree(place / "one", place / "two")


class Running:
    """A command in a session of its own, its messages in a file."""

    def __init__(self, words: list[str], log: Path, most: int | None = None) -> None:
        def limit() -> None:
            if most is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        self.log = log
        with log.open("wb") as said:
            self.process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True, preexec_fn=limit
            )

    def wait(self) -> int:
        return self.process.wait(timeout=900)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_worker(self, rng: random.Random) -> None:
        """One process below the command, as soon as there is one."""
        while self.process.poll() is None:
            try:
                found = psutil.Process(self.process.pid).children(recursive=True)
                if found:
                    rng.choice(found).kill()
                    return
            except psutil.Error:
                pass
            time.sleep(0.01)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


def fault(verb: Verb, kind: str, out: Path, seconds: float, rng: random.Random) -> str:
    """Give the command and its fault; what is wrong already, or nothing."""
    first = out.with_suffix(".log")
    if kind == "disk":
        run = Running(verb.command(out, True), first, most=int(10 ** rng.uniform(3, 5.5)))
        code = run.wait()
        return (
            "" if code == 0 or (code == 2 and "Traceback" not in run.said) else f"exit {code} on a full disk"
        )
    run = Running(verb.command(out, True), first)
    time.sleep(rng.uniform(0, seconds))
    if kind == "two":
        other = Running(verb.command(out, False), out.with_suffix(".other"))
        codes = [run.wait(), other.wait()]
        told = run.said + other.said
        if "Traceback" in told or sorted(codes) not in ([0, 0], [0, 2]):
            return f"exits {codes} of two writers"
        reason = (
            "being written by process" in told or "is not empty" in told
        )  # or the first had ended by then
        return "" if codes == [0, 0] or reason else "refused without the reason"
    if kind == "worker":
        run.kill_worker(rng)
        code = run.wait()
        return "" if code in (0, 2) and "Traceback" not in run.said else f"exit {code} after a lost worker"
    run.kill()
    return ""


def trial(verb: Verb, kind: str, want: str, seconds: float, place: Path, rng: random.Random) -> str:
    """What went wrong, or nothing."""
    out = place / f"{kind}-{rng.getrandbits(32):08x}"
    wrong = fault(verb, kind, out, seconds, rng)
    if wrong:
        return wrong
    for _ in range(AGAIN):
        run = Running(verb.command(out, not out.exists()), out.with_suffix(".log"))
        code = run.wait()
        if "Traceback" in run.said:
            return "a traceback"
        if code == 0:
            break
        if "not empty" in run.said and verb.digest(out) == want:
            break  # it was done before the fault
    else:
        return f"exit {code} again: {run.said.strip().splitlines()[-1][:120]}"
    return "" if verb.digest(out) == want else "another result"


def campaign(name: str, kinds: list[str], trials: int, seed: int, place: Path) -> list[dict[str, Any]]:
    """Trials of every kind of fault for one verb."""
    verb, rng = verbs(place)[name], random.Random(f"{seed} {name}")
    quiet = place / f"quiet-{name}"
    began = time.monotonic()
    if Running(verb.command(quiet, True), quiet.with_suffix(".log")).wait():
        raise SystemExit(f"{name} fails without any fault: {quiet.with_suffix('.log').read_text()[-400:]}")
    seconds, want = time.monotonic() - began, verb.digest(quiet)
    rows = []
    for kind in kinds:
        wrong: Counter[str] = Counter()
        for _ in range(trials):
            with tempfile.TemporaryDirectory(dir=place) as own:
                found = trial(verb, kind, want, seconds, Path(own), rng)
            if found:
                wrong[found] += 1
        survived = trials - sum(wrong.values())
        rows.append(
            {"verb": name, "fault": kind, "trials": trials, "survived": survived, "failures": dict(wrong)}
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = list(verbs(Path()))
    parser.add_argument("verbs", nargs="*", default=known, help=", ".join(known))
    parser.add_argument("--trials", type=int, default=10, help="for each verb and fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), given.verbs)
        rows = [
            r for v in given.verbs for r in campaign(v, given.faults, given.trials, given.seed, Path(folder))
        ]
    print("\n| verb | fault | trials | survived | failures |\n|---|---|---|---|---|")
    for r in rows:
        wrong = "; ".join(f"{n} × {k}" for k, n in r["failures"].items()) or "none"
        print(f"| {r['verb']} | {r['fault']} | {r['trials']} | {r['survived']} | {wrong} |")
    return 1 if any(r["failures"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
