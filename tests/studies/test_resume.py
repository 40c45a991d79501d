"""A study that is killed and started again ends with the numbers of one that was not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from cuewise.studies.jobs import job_of, run_job
from cuewise.studies.measures import applicable
from tests.studies.tiny import LAB, LONG, STUDY, studied

pytestmark = pytest.mark.usefixtures("warm_start")

ROOT = Path(__file__).parents[2]
ONE = replace(STUDY, arms=lambda lab: STUDY.arms(lab)[:1])


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """The next command dies as file number n would get its name; returns the names that were written."""
    rename = os.replace

    def arm(n: int) -> list[str]:
        written: list[str] = []

        def killing(source: str | Path, target: str | Path) -> None:
            if len(written) == n:
                raise Killed
            written.append(Path(target).name)
            rename(source, target)

        monkeypatch.setattr("cuewise.files.os.replace", killing)
        return written

    return arm


def result(out: Path) -> dict[str, object]:
    return json.loads((out / "results.json").read_text())["studies"]


@pytest.mark.kill
@pytest.mark.usefixtures("in_process")
def test_a_kill_at_every_boundary(tmp_path: Path, kill_at: Callable[[int], list[str]]) -> None:
    """At every file that the command writes: settings, checkpoints, encoder, each measure, results, report."""

    def run(out: Path) -> None:
        studied([ONE], out, seeds=1)

    names = kill_at(10_000)
    run(tmp_path / "whole")
    expected = result(tmp_path / "whole")
    written = list(names)
    assert {"last.ckpt", "results.json", "results.md", "report.html"} <= set(written)
    assert sum(n.startswith(("clean-", "conflict-")) for n in written) == 2
    out = tmp_path / "killed"
    for n in range(len(written)):
        shutil.rmtree(out, ignore_errors=True)
        kill_at(n)
        with pytest.raises(Killed):
            run(out)
        kill_at(10_000)
        run(out)
        assert result(out) == expected, f"killed before {written[n]}"


@pytest.mark.kill
def test_a_kill_before_every_measure(tmp_path: Path) -> None:
    """The measures of a finished arm are taken one by one, each in a call of its own."""
    names = tuple(applicable(STUDY.measures, LAB))
    job = job_of(LAB.config({}, "simclr", 0, 1), tmp_path, names)
    expected = run_job(job, LAB)
    shutil.rmtree(Path(job.folder) / "measured")
    for name in reversed(names):
        run_job(replace(job, measures=(name,)), LAB)
    files = {f: f.stat().st_mtime_ns for f in (Path(job.folder) / "measured").iterdir()}
    assert run_job(job, LAB) == expected
    assert {
        f: f.stat().st_mtime_ns for f in (Path(job.folder) / "measured").iterdir()
    } == files  # none is left


KILLED = """
import sys
from pathlib import Path
from tests.studies.test_resume import ONE
from tests.studies.tiny import LONG, studied
studied([ONE], Path(sys.argv[1]), lab=LONG, seeds=1, jobs="2")
"""


@pytest.mark.kill
def test_resume_after_a_kill(tmp_path: Path) -> None:
    """kill -9 on the study: its worker leaves by itself after a checkpoint, and the next call ends as if nothing was."""
    out = tmp_path / "out"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    study = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)], env=environment, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: study.poll() is not None or any(steps(run) >= 3 for run in (out / "arms").glob("*")))
    assert study.poll() is None, "the study ended before it was killed"
    workers = psutil.Process(study.pid).children()
    assert len(workers) == 1  # two are allowed, for one arm
    study.send_signal(signal.SIGKILL)
    study.wait()
    wait_for(lambda: not any(w.is_running() and w.status() != psutil.STATUS_ZOMBIE for w in workers))
    begun = {run.name: steps(run) for run in (out / "arms").glob("*")}
    assert any(0 < n < 40 for n in begun.values())
    assert not (out / "results.json").exists()

    studied([ONE], out, lab=LONG, seeds=1)
    assert json.loads((out / "results.json").read_text())["trained_now"] >= 1
    whole = job_of(LONG.config({}, "simclr", 0, 20), tmp_path / "whole", ("clean",))
    run_job(whole, LONG)
    first, second = (
        torch.load(Path(folder) / "checkpoints" / "last.ckpt", weights_only=True)["method"]
        for folder in (whole.folder, out / "arms" / Path(whole.folder).name)
    )
    assert all(torch.equal(first[k], second[k]) for k in first if isinstance(first[k], torch.Tensor))


def steps(run: Path) -> int:
    file = run / "metrics.jsonl"
    rows = [r for r in file.read_text().splitlines() if r.endswith("}")] if file.is_file() else []
    return int(json.loads(rows[-1])["step"]) if rows else 0


def wait_for(condition, seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)
